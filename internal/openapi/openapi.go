// Package openapi describes the HTTP API: openapi.json, which is written by hand, and the reference page
// that the server renders from it.
//
// It does not know the handlers. Tests of this package and of the handlers hold both to openapi.json.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
)

// The paths at which Handler serves the description and its reference page.
const (
	PathJSON = "/openapi.json"
	PathDocs = "/docs"
)

//go:embed openapi.json
var text string

// Text returns the OpenAPI 3.1 description of the API.
func Text() string { return text }

// Handler serves the description at PathJSON and the reference page at PathDocs. Neither needs an API key.
func Handler() (http.Handler, error) {
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, err
	}
	page, err := d.render()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+PathJSON, file("application/json", []byte(text)))
	mux.Handle("GET "+PathDocs, file("text/html; charset=utf-8", page))
	return mux, nil
}

// file serves a text that stays the same while the process runs. Callers ask again after an upgrade,
// because they must compare the ETag each time.
func file(kind string, text []byte) http.HandlerFunc {
	tag := `"` + hash(string(text)) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+hash(style)+
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
