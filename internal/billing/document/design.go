package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io/fs"
	"strings"

	"github.com/duesday/duesday/internal/locale"
)

// A Design is how pages look: the template in page.html, the style in page.css, and the words of
// each language.
type Design struct {
	page   *template.Template
	policy string
	words  map[string]map[string]string // by language and key
}

// NewDesign returns the design of embedded files, which a test reads.
func NewDesign(files fs.FS) *Design {
	style, _ := fs.ReadFile(files, "page.css")
	text, _ := fs.ReadFile(files, "page.html")
	sum := sha256.Sum256(style)
	d := &Design{words: map[string]map[string]string{},
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; frame-ancestors 'none'; form-action ",
		page:   template.Must(template.New("").Parse(strings.Replace(string(text), "/*style*/", string(style), 1)))}
	for _, language := range locale.Languages() {
		text, _ := fs.ReadFile(files, "words/"+language+".json")
		var words map[string]string
		_ = json.Unmarshal(text, &words)
		d.words[language] = words
	}
	return d
}

// Policy returns the Content-Security-Policy of all pages: they have one style, send forms only to
// the sources, and load nothing.
func (d *Design) Policy(forms string) string { return d.policy + forms }

// Word returns a text in the language.
func (d *Design) Word(language, key string) string { return d.words[language][key] }

// Render returns the page that shows p.
func (d *Design) Render(p any) ([]byte, error) {
	var b bytes.Buffer
	err := d.page.ExecuteTemplate(&b, "page", p)
	return b.Bytes(), err
}
