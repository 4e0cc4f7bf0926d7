package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var commitTime = time.Date(2026, 11, 30, 10, 30, 0, 0, time.UTC)

// stage lays out what build.sh would, with a text as the binary.
func stage(t *testing.T, root string) target {
	t.Helper()
	folder := filepath.Join(root, "linux_amd64")
	if err := os.CopyFS(filepath.Join(folder, "systemd"), os.DirFS("systemd")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(root, "scripts"), os.DirFS("scripts")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"duesday", "LICENSE", "LICENSES-OF-MODULES", "NOTICE", "README.md", "CHANGELOG.md", "install.md", "man/man1/duesday.1.gz",
		"completions/duesday.bash", "completions/_duesday", "completions/duesday.fish", "../linux_amd64.image/usr/bin/duesday",
		"../linux_amd64.image/tmp/x", "../linux_amd64.image/var/lib/duesday/x"} {
		at := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(name+"\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return target{folder: folder, os: "linux", arch: "amd64", version: "0.1.1-0.20261130103000-abcdef123456", commit: "abcdef", time: commitTime,
		info: &buildinfo.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/duesday/duesday", Version: "v0.1.1"},
			Deps: []*debug.Module{{Path: "github.com/Ex/ample", Version: "v1.2.3"}}}}
}

// build writes all files of a target into a new folder and returns them by name.
func build(t *testing.T) map[string][]byte {
	t.Helper()
	config, err := filepath.Abs("nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	x, out := stage(t, t.TempDir()), t.TempDir()
	if err := errors.Join(x.archive(out+"/a.tar.gz"), x.sbom(out+"/a.cdx.json"), image(out+"/image.tar", []target{x})); err != nil {
		t.Fatal(err)
	}
	nfpm := filepath.Join(t.TempDir(), "nfpm")
	if text, err := exec.Command("go", "build", "-o", nfpm, "github.com/goreleaser/nfpm/v2/cmd/nfpm").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, format := range []string{"deb", "rpm"} {
		c := exec.Command(nfpm, "package", "-f", config, "-p", format, "-t", out+"/")
		c.Dir, c.Env = x.folder, append(os.Environ(), "GOARCH=amd64", "PACKAGE_VERSION=0.1.1~0.20261130103000.abcdef123456", fmt.Sprint("SOURCE_DATE_EPOCH=", commitTime.Unix()))
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	files := map[string][]byte{}
	for _, name := range []string{"a.tar.gz", "a.cdx.json", "duesday_0.1.1~0.20261130103000.abcdef123456-1_amd64.deb",
		"duesday-0.1.1~0.20261130103000.abcdef123456-1.x86_64.rpm", "image.tar"} {
		body, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = body
	}
	return files
}

// TestSame: two builds in two folders give the same bytes.
func TestSame(t *testing.T) {
	first, second := build(t), build(t)
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs", name)
		}
	}
	var bom struct{ Components []struct{ Purl string } }
	if err := json.Unmarshal(first["a.cdx.json"], &bom); err != nil || len(bom.Components) != 2 || bom.Components[1].Purl != "pkg:golang/github.com/ex/ample@v1.2.3" {
		t.Errorf("SBOM: %v, %+v", err, bom)
	}
}

// TestImage: the layout's blobs are named by their sums, nothing in the image runs as root, and the data folder is the user's.
func TestImage(t *testing.T) {
	files := map[string][]byte{}
	read := tar.NewReader(bytes.NewReader(build(t)["image.tar"]))
	for h, err := read.Next(); err != io.EOF; h, err = read.Next() {
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(commitTime) || h.Uid != 0 {
			t.Errorf("%s: time %v, owner %d", h.Name, h.ModTime, h.Uid)
		}
		if files[h.Name], err = io.ReadAll(read); err != nil {
			t.Fatal(err)
		}
	}
	if files["oci-layout"] == nil || !bytes.Contains(files["index.json"], []byte(`"duesday:0.1.1-0.20261130103000-abcdef123456"`)) {
		t.Errorf("no layout with a name: %s", files["index.json"])
	}
	config := ""
	for _, body := range files {
		if bytes.Contains(body, []byte(`"Entrypoint"`)) {
			config = string(body)
		}
	}
	for _, want := range []string{`"User":"65532:65532"`, `"Cmd":["serve","--listen","0.0.0.0:8080","--behind-proxy"]`, `"Volumes":{"/var/lib/duesday":{}}`} {
		if !strings.Contains(config, want) {
			t.Errorf("the image's config does not have %s: %s", want, config)
		}
	}
	if n := strings.Count(string(authorities()), "BEGIN CERTIFICATE"); n < 80 {
		t.Errorf("%d certificate authorities", n)
	}
}

// TestScripts: every script is one for a POSIX shell.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("scripts/*.sh")
	if err != nil || len(scripts) != 4 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, name := range append(scripts, "systemd/duesday-service", "build.sh", "check.sh", "try.sh") {
		if out, err := exec.Command("sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(text, []byte("#!/bin/sh\n")) || bytes.Contains(text, []byte("[[ ")) {
			t.Errorf("%s is not for a POSIX shell", name)
		}
		if slices.Contains(scripts, name) && bytes.Contains(text, []byte("rm -r")) {
			t.Errorf("%s deletes a folder", name)
		}
	}
}

// TestUnit: systemd rates the unit's exposure below 2.0.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, NOT TESTED: the exposure of the unit, because there is no systemd-analyze: apt-get install systemd")
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", "systemd/duesday.service").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
