package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	_ "embed" // for image.json
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const user = 65532 // of the image, also in image.json and build.sh

//go:embed image.json
var imageConfig []byte

// image writes an OCI layout with an index of the targets' images.
func image(name string, targets []target) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range targets {
		i, err := t.image()
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}}})
	}
	folder, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	tag := "duesday:" + strings.ReplaceAll(targets[0].version, "+", "-")
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name": "docker.io/library/" + tag})); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeTar(&b, folder, "", targets[0].time, nil); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// image returns the image of what build.sh has staged beside the target. It contains one program, and no shell. Its command listens for webhooks on
// all addresses of the container. The API and the pages stay on the container's loopback address.
func (t target) image() (v1.Image, error) {
	root := t.folder + ".image"
	certificates := filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")
	if err := cmp.Or(os.MkdirAll(filepath.Dir(certificates), 0o755), os.WriteFile(certificates, authorities(), 0o644)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := writeTar(&b, root, "", t.time, func(h *tar.Header) {
		switch "/" + h.Name {
		case "/tmp/":
			h.Mode = 0o1777
		case "/var/lib/duesday/":
			h.Mode, h.Uid, h.Gid = 0o700, user, user
		}
	}); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	i := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	i, err = mutate.Append(i, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: t.time}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	c, err := i.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = t.os, t.arch, v1.Time{Time: t.time}
	if err := json.Unmarshal(imageConfig, &c.Config); err != nil {
		return nil, err
	}
	c.Config.Labels = map[string]string{"org.opencontainers.image.title": "duesday", "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version": t.version, "org.opencontainers.image.revision": t.commit}
	return mutate.ConfigFile(i, c)
}

// authorities returns Mozilla's certificate authorities as PEM, without those that Mozilla trusts
// only under a condition, which a file cannot contain.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer does not fail
		}
	}
	return b.Bytes()
}
