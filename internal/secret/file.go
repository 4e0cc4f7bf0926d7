package secret

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// maxFile is how many bytes a secret's file may have: no key is as long, and a file given by
// mistake is told by it.
const maxFile = 4096

// FromFile reads the secret that a file holds, without the white space around it. The file
// has to be a regular one of 1 to 4096 bytes, in one line, and nobody's but its owner's to
// read. No error repeats what is in it.
func FromFile(path string) (Text, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe would wait for its writer
	if err != nil {
		return Text{}, fmt.Errorf("secret file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Text{}, fmt.Errorf("secret file %s: want a regular file, not a %s", path, kind(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return Text{}, fmt.Errorf("secret file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return Text{}, fmt.Errorf("secret file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" { // which has no such bits
		return Text{}, fmt.Errorf("secret file %s: others than its owner may use it (mode %#o): chmod 600 %s", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Text{}, fmt.Errorf("secret file: %w", err)
	}
	s := strings.TrimSpace(string(text))
	switch {
	case len(text) > maxFile:
		return Text{}, fmt.Errorf("secret file %s: more than %d bytes: want the secret and nothing else", path, maxFile)
	case s == "":
		return Text{}, fmt.Errorf("secret file %s: it is empty: want the secret in one line", path)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return Text{}, fmt.Errorf("secret file %s: want one line and no white space within: the secret and nothing else", path)
	}
	return New(s), nil
}

func kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&os.ModeNamedPipe != 0:
		return "pipe"
	}
	return "device"
}
