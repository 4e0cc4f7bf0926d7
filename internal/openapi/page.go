package openapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

// style is the page's style, which its Content-Security-Policy allows by hash.
//
//go:embed page.css
var style string

// render returns the reference page.
func (d *document) render() ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"operations": d.operations,
		"codes":      d.codes,
		"has":        func(list []string, name string) bool { return slices.Contains(list, name) },
		"paragraphs": func(text string) []string { return strings.Split(text, "\n\n") },
		"join":       func(list []string) string { return strings.Join(list, ", ") },
		"style":      func() template.CSS { return template.CSS(style) }, //nolint:gosec // ours
	}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, d)
	return b.Bytes(), err
}
