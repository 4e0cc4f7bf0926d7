package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshooting: each message that docs/troubleshooting.md explains is one of the program's, word by
// word, and the pages that people begin with lead there.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var source bytes.Buffer
	for _, root := range []string{"../../internal", "."} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			b, err := os.ReadFile(name)
			source.Write(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	headings := regexp.MustCompile("(?m)^### (.*)$").FindAllStringSubmatch(string(page), -1)
	if len(headings) < 8 {
		t.Errorf("%d messages", len(headings))
	}
	for _, h := range headings {
		if message := strings.Trim(h[1], "`"); message == h[1] || !bytes.Contains(source.Bytes(), []byte(message)) {
			t.Errorf("%s is no message of the program", h[1])
		}
	}
	for _, from := range []string{"../../README.md", "../../docs/operating.md"} {
		b, err := os.ReadFile(from)
		if err != nil || !bytes.Contains(b, []byte("troubleshooting.md")) {
			t.Errorf("%s does not lead to it (%v)", from, err)
		}
	}
}
