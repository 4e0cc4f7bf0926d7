// Package npmtest reads npm packages for tests, each at one version with one checksum. npm brings a package into
// .cache once. The package does not run anything of what it reads.
package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Package is a version of an npm package.
type Package struct {
	Spec string // such as axe-core@4.14.1
	File string // its archive, as npm names it
	Sum  string // SHA-512 of the archive, in hexadecimal
}

// Each calls do with each file of the package and its name within the package. It returns an error if npm cannot
// bring the package, or if the archive has another checksum.
func (p Package) Each(do func(name string, content []byte) error) error {
	text, err := p.archive()
	if err != nil {
		return err
	}
	if sum := sha512.Sum512(text); hex.EncodeToString(sum[:]) != p.Sum {
		return fmt.Errorf("%s is not the package it was: its sha512 is %x", p.Spec, sum)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	for in := tar.NewReader(unpacked); ; {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, ok := strings.Cut(h.Name, "/")
		if !ok || !filepath.IsLocal(name) || h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(in)
		if err == nil {
			err = do(name, content)
		}
		if err != nil {
			return err
		}
	}
}

// archive returns the package's archive from .cache, or has npm bring it.
func (p Package) archive() ([]byte, error) {
	root := "."
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		} else if len(root) > 30 {
			return nil, errors.New("no go.mod above")
		}
		root = filepath.Join(root, "..")
	}
	cache := filepath.Join(root, ".cache")
	text, err := os.ReadFile(filepath.Join(cache, p.File))
	if errors.Is(err, os.ErrNotExist) {
		return p.fetch(cache)
	}
	return text, err
}

// fetch has npm bring the archive, and moves it into place whole.
func (p Package) fetch(cache string) ([]byte, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(cache, "npm-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("npm", "pack", p.Spec, "--pack-destination", dir, "--ignore-scripts", "--silent").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w: %s", p.Spec, err, out)
	}
	if err := os.Rename(filepath.Join(dir, p.File), filepath.Join(cache, p.File)); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(cache, p.File))
}
