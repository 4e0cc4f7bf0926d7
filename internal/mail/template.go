package mail

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/outbox"
)

//go:embed templates
var embedded embed.FS // the files that NewTemplates begins with

// A message is made of its form's layout, and the blocks of LANGUAGE/words.txt and LANGUAGE/KIND.txt.
const (
	textLayout = "layout.txt"
	htmlLayout = "layout.html"
)

// Kinds returns the kinds of effects that can become a message.
func Kinds() []string {
	return []string{outbox.KindReminder, outbox.KindReceipt, outbox.KindDeclined, outbox.KindFailed,
		outbox.KindActionRequired, outbox.KindRefund, outbox.KindCancelled, outbox.KindCardExpires,
		outbox.KindPriceChange, outbox.KindPaymentRequest}
}

// Templates render views as text and HTML. They are safe for concurrent use.
type Templates struct {
	files map[string]string // by name: en/receipt.txt

	mu     sync.Mutex
	parsed map[string]*forms // by language/kind; guarded by mu
}

// forms are the two forms of one message.
type forms struct {
	text   *template.Template
	html   *htmltemplate.Template
	labels sync.Map // of facts, by key: to choose one by "label" each time was half of the work
}

func (f *forms) label(fact *fact) error {
	if known, ok := f.labels.Load(fact.Key); ok {
		fact.Label = known.(string)
		return nil
	}
	var b strings.Builder
	err := f.text.ExecuteTemplate(&b, "label", fact.Key)
	if fact.Label = b.String(); err == nil {
		f.labels.Store(fact.Key, fact.Label)
	}
	return err
}

// NewTemplates returns the built-in templates, replaced by the folder's files with the same names.
// It parses and renders every template. Errors name the file and the line. If folder is empty,
// NewTemplates returns only the built-in templates.
func NewTemplates(dir string) (*Templates, error) {
	t := &Templates{files: map[string]string{}, parsed: map[string]*forms{}}
	err := fs.WalkDir(embedded, "templates", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		t.files[strings.TrimPrefix(name, "templates/")] = string(text)
		return err
	})
	if err != nil || dir == "" {
		return t, err
	}
	if err = t.override(os.DirFS(dir)); err == nil {
		err = t.check()
	}
	if err != nil {
		return nil, fmt.Errorf("mail templates in %s: %w", dir, err)
	}
	return t, nil
}

// override reads the files of a person's folder. It skips hidden ones.
func (t *Templates) override(dir fs.FS) error {
	return fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(path.Base(name), ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir() || hidden:
			return nil
		}
		if _, known := t.files[name]; !known {
			return fmt.Errorf("%s is not the name of a template; to list all templates, run: duesday mail templates export", name)
		}
		text, err := fs.ReadFile(dir, name)
		t.files[name] = string(text)
		return err
	})
}

// check makes every message of sample data.
func (t *Templates) check() error {
	s := settings.Settings{MerchantName: "Ada's Gym", PostalAddress: "12 Bridge Street"}
	for _, language := range locale.Languages() {
		for _, kind := range Kinds() {
			for _, e := range samples(kind, language) {
				v, err := newView(e, &s)
				if err == nil {
					_, err = t.fill(v)
				}
				if err != nil {
					return fmt.Errorf("%s/%s.txt: %w", language, kind, err)
				}
			}
		}
	}
	return nil
}

// Export writes the built-in templates into a folder. If one of the files exists, Export writes
// nothing and returns fs.ErrExist.
func Export(dir string) (names []string, err error) {
	t, err := NewTemplates("")
	if err != nil {
		return nil, err
	}
	names = slices.Sorted(maps.Keys(t.files))
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), fs.ErrExist)
		}
	}
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(t.files[name]), 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// content is a message without its headers.
type content struct {
	subject    string // one line
	text, html string
}

// fill makes the content of a view. Of an unknown kind it returns outbox.ErrPermanent.
func (t *Templates) fill(v *view) (content, error) {
	if !slices.Contains(Kinds(), v.Kind) {
		return content{}, fmt.Errorf("%w: unknown kind %q", outbox.ErrPermanent, clean(v.Kind))
	}
	f, err := t.forms(v.Language, v.Kind)
	if err != nil {
		return content{}, err
	}
	for i := range v.Facts {
		if err := f.label(&v.Facts[i]); err != nil {
			return content{}, err
		}
	}
	v.Facts = slices.DeleteFunc(v.Facts, func(f fact) bool { return f.Label == "" }) // a folder's words from before
	var subject, text, html bytes.Buffer
	if err = f.text.ExecuteTemplate(&subject, "subject", v); err == nil {
		err = f.text.ExecuteTemplate(&text, textLayout, v)
	}
	if err == nil {
		err = f.html.ExecuteTemplate(&html, htmlLayout, v)
	}
	if err != nil {
		return content{}, err
	}
	c := content{subject: clean(subject.String()), text: text.String(), html: html.String()}
	if c.subject == "" {
		return c, errors.New("the subject is empty")
	}
	return c, nil
}

// forms parses the templates of a message, once.
func (t *Templates) forms(language, kind string) (*forms, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := language + "/" + kind
	if f := t.parsed[key]; f != nil {
		return f, nil
	}
	f := &forms{text: template.New(""), html: htmltemplate.New("")}
	for _, name := range []string{textLayout, htmlLayout, language + "/words.txt", key + ".txt"} {
		var err error
		if name != htmlLayout {
			_, err = f.text.New(name).Parse(t.files[name])
		}
		if err == nil && name != textLayout {
			_, err = f.html.New(name).Parse(t.files[name])
		}
		if err != nil {
			return nil, err
		}
	}
	t.parsed[key] = f
	return f, nil
}
