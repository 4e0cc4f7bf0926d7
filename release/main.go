// Command release packs staged files into archives, a container image and SBOMs. build.sh stages
// the files, calls it, and has nfpm pack them as deb and rpm.
//
// Version and times come from the staged binaries, into which Go stamps the commit. It is a module of its own,
// so that the product does not depend on what packs it.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A target is a folder with the files for one operating system and architecture.
type target struct {
	folder, os, arch, version, commit string
	time                              time.Time // of the commit
	info                              *buildinfo.BuildInfo
}

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run packs the folders into files in out.
func run(out string, folders []string) error {
	var linux []target
	for _, folder := range folders {
		t, err := read(folder)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		name := filepath.Join(out, strings.Join([]string{"duesday", t.version, t.os, t.arch}, "_"))
		if err := cmp.Or(t.archive(name+".tar.gz"), t.sbom(name+".cdx.json")); err != nil {
			return err
		}
		if t.os == "linux" {
			linux = append(linux, t)
		}
	}
	if len(linux) == 0 {
		return nil
	}
	return image(filepath.Join(out, "duesday_"+linux[0].version+"_image.tar"), linux)
}

// read finds out what is staged in the folder.
func read(folder string) (t target, err error) {
	if t.info, err = buildinfo.ReadFile(filepath.Join(folder, "duesday")); err != nil {
		return t, err
	}
	set := map[string]string{}
	for _, s := range t.info.Settings {
		set[s.Key] = s.Value
	}
	t.folder, t.os, t.arch, t.commit = folder, set["GOOS"], set["GOARCH"], set["vcs.revision"]
	t.version = strings.TrimPrefix(t.info.Main.Version, "v")
	t.time, err = time.Parse(time.RFC3339, set["vcs.time"])
	return t, err
}

// archive writes the folder as a compressed tar file with one folder.
func (t target) archive(name string) error {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a valid level
	if err := cmp.Or(writeTar(z, t.folder, strings.TrimSuffix(filepath.Base(name), ".tar.gz"), t.time, nil), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// writeTar writes a folder's files, in byte order, as root's and with the given time. own changes a header; it may be nil.
func writeTar(w io.Writer, folder, below string, at time.Time, own func(*tar.Header)) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		relative, _ := filepath.Rel(folder, name) // it is below
		if relative = filepath.Join(below, relative); err != nil || relative == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: relative, Mode: int64(info.Mode().Perm()), ModTime: at, Typeflag: tar.TypeDir, Format: tar.FormatUSTAR}
		var body []byte
		if !d.IsDir() {
			body, err = os.ReadFile(name)
			h.Typeflag, h.Size = tar.TypeReg, int64(len(body))
		} else {
			h.Name += "/"
		}
		if own != nil {
			own(h)
		}
		if err = cmp.Or(err, t.WriteHeader(h)); err != nil {
			return err
		}
		_, err = t.Write(body)
		return err
	})
	return cmp.Or(err, t.Close())
}
