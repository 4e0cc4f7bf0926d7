package secret_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
)

func TestFromFile(t *testing.T) {
	tests := []struct {
		name, text string
		mode       os.FileMode
		want, says string
	}{
		{"plain", plain, 0o600, plain, ""},
		{"with a line's end", "  " + plain + "\r\n", 0o400, plain, ""},
		{"as long as may be", strings.Repeat("a", 4096), 0o600, strings.Repeat("a", 4096), ""},
		{"too long", strings.Repeat("a", 4097), 0o600, "", "at most 4096 bytes"},
		{"empty", "", 0o600, "", "is empty"},
		{"white", " \n\t", 0o600, "", "is empty"},
		{"two lines", plain + "\n" + plain, 0o600, "", "on one line"},
		{"for the group", plain, 0o640, "", "chmod 600"},
		{"for all", plain, 0o604, "", "chmod 600"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(tt.text), tt.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tt.mode); err != nil { // whatever the mask
			t.Fatal(err)
		}
		got, err := secret.FromFile(path)
		if got.Reveal() != tt.want || (err == nil) != (tt.says == "") {
			t.Errorf("%s: got %d bytes, %v; want %d bytes", tt.name, len(got.Reveal()), err, len(tt.want))
		}
		if err != nil && (!strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), plain) ||
			!strings.Contains(err.Error(), path)) {
			t.Errorf("%s: got %v, want %q and the path, without the secret", tt.name, err, tt.says)
		}
	}
	folder := t.TempDir()
	if _, err := secret.FromFile(folder); err == nil || !strings.Contains(err.Error(), "(got a folder)") {
		t.Errorf("a folder: got %v", err)
	}
	if _, err := secret.FromFile(filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}
