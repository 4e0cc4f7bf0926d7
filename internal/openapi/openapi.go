// Package openapi serves the handwritten description of the HTTP API, openapi.json, and the reference page
// that it renders from it.
//
// It does not know the handlers. Tests keep openapi.json and the handlers in agreement.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/duesday/duesday/internal/web"
)

// Paths of the description and of the reference page.
const (
	PathJSON = "/openapi.json"
	PathDocs = "/docs"
)

//go:embed openapi.json
var text string

// Text returns the OpenAPI 3.1 description of the API.
func Text() string { return text }

// Paths returns the handlers of PathJSON and PathDocs. Neither needs an API key.
func Paths() (map[string]web.Handler, error) {
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, err
	}
	page, err := d.render()
	if err != nil {
		return nil, err
	}
	return map[string]web.Handler{
		PathJSON: file("application/json", []byte(text)),
		PathDocs: file("text/html; charset=utf-8", page),
	}, nil
}

// file serves a text that does not change while the process runs. Clients revalidate it by its ETag, so they
// notice an upgrade.
func file(kind string, text []byte) web.Handler {
	tag, styleHash := `"`+hash(string(text))+`"`, hash(style)
	return func(w http.ResponseWriter, r *web.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return web.WrongMethod(w, "GET, HEAD")
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+styleHash+
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		http.ServeContent(w, r.Request, "", time.Time{}, bytes.NewReader(text))
		return nil
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
