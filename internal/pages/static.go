package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var files embed.FS

const staticPath = "/static/"

// static maps the name of each file, with its checksum, to its text, so that browsers can keep it for ever.
// names maps the plain names to these.
var static, names = func() (map[string][]byte, map[string]string) {
	texts, with := map[string][]byte{}, map[string]string{}
	for _, name := range []string{"style.css", "script.js", "icon.svg"} {
		text, _ := files.ReadFile("static/" + name) // embedded
		sum := sha256.Sum256(text)
		base, ending, _ := strings.Cut(name, ".")
		with[name] = base + "." + hex.EncodeToString(sum[:8]) + "." + ending
		texts[with[name]] = text
	}
	return texts, with
}()

func serveStatic(w http.ResponseWriter, r *http.Request) {
	text, found := static[r.PathValue("file")]
	if !found {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	w.Header().Set("Content-Type", kind[path.Ext(r.PathValue("file"))])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(text) // the browser may be gone
}
