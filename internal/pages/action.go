package pages

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/duesday/duesday/internal/key"
)

// An action changes one object: a form, a page that shows what will change, and a button. It is one request
// of the API, and the page prints the command that does the same.
type action struct {
	on, name    string // on is the page of the object, such as /accounts/{account}
	Title, Text string // Text says what the action does
	If          string // condition of what the preview shows; "": none
	Scope       key.Scope
	method, to  string // of the API
	from        string // API path of the object as it is before
	preview     string // API path that shows what will change; "": there is none
	body        object // of each request
	Fields      []input
	command     string                     // {name} is a value of the path; the fields follow as flags
	link        bool                       // the response has a link for the customer, which is shown; each form makes its own
	shown       func(before, after object) // changes the preview after for people; nil: not needed
	made        string                     // API list of what the action makes, by idempotency key; "": a repeated request gets the object
}

func (a action) path() string { return a.on + "/" + a.name }

// ask shows the form with what is known of the object.
func (a action) ask(v *visit) error {
	before, version, err := a.before(v)
	if err != nil {
		return err
	}
	a.page(v, http.StatusOK, object{"before": before, "version": version})
	return nil
}

// before returns the object as it is, and its version: its ETag, or a hash of an object without one.
func (a action) before(v *visit) (before object, version string, err error) {
	to, err := v.send(http.MethodGet, v.fill(a.from), nil, nil)
	if err != nil {
		return nil, "", err
	}
	if err := decode(&to.body, &before); err != nil {
		return nil, "", err
	}
	delete(before, "next_cursor") // of a list: it is new in each response
	switch version = to.header.Get("ETag"); {
	case a.link:
		version = rand.Text()
	case version == "":
		version = hash(fmt.Sprint(before))
	}
	return before, version, nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// page shows the form with the data.
func (a action) page(v *visit, status int, data object) {
	data["action"], data["back"], data["values"], data["allowed"] = a, v.fill(a.on), v.r.PostForm, v.key.Scope.Includes(a.Scope)
	data["previewed"] = a.preview != ""
	v.render(status, "action", a.Title, data)
}

// do shows what will change, or changes it if the form says so. The idempotency key is that of the object's
// version and of the fields: a second click, a reload and a second tab are the same request.
func (a action) do(v *visit) error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return errForm
	}
	before, version, err := a.before(v)
	if err != nil {
		return err
	}
	data := object{"before": before, "version": version}
	if given := v.r.PostForm.Get("version"); a.link && given != "" {
		data["version"], version = given, given
	}
	in, err := a.read(v, before)
	if err == nil && v.r.PostForm.Get("confirm") != "" {
		err = a.change(v, in, version)
		if err == nil {
			return nil
		}
	} else if err == nil {
		data["confirm"], data["command"] = true, a.line(v, before, in)
		if a.preview != "" {
			var to *reply
			var after object
			if to, err = v.send(http.MethodPost, v.fill(a.preview), in, nil); err == nil {
				err = decode(&to.body, &after)
			}
			if err == nil && a.shown != nil {
				a.shown(before, after)
			}
			data["after"] = after
		}
	}
	p, ok := errors.AsType[*problem](err)
	if err != nil && (!ok || p.Status >= http.StatusInternalServerError || p.Status == http.StatusNotFound) {
		return err
	}
	status := http.StatusOK
	if p != nil {
		data["wrong"], data["confirm"], status = p, false, p.Status
		if data["before"], data["version"], err = a.before(v); err != nil {
			return err
		}
		posted := v.r.PostForm.Get("version")
		if p.Code == "in_progress" || a.link { // the same form repeats the request
			data["version"] = posted
		} else {
			data["changed"] = posted != "" && posted != data["version"]
		}
	}
	a.page(v, status, data)
	return nil
}

var errStale = &problem{Status: http.StatusPreconditionFailed, Title: "It has changed meanwhile",
	Detail: "It has changed since you opened this form, perhaps by your own click. Below is what it is now; look before you do it again."}

// change sends the request, and shows the object's page, or the link in the response.
func (a action) change(v *visit, in object, now string) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	version := v.r.PostForm.Get("version")
	key := "page-" + hash(a.method+" "+v.fill(a.to)+"\n"+version+"\n"+string(text))
	header := map[string]string{"Idempotency-Key": key}
	if strings.HasPrefix(version, `"`) {
		header["If-Match"] = version
	} else if version != now {
		done, err := a.isMade(v, key)
		if err == nil && !done {
			err = errStale
		}
		if err != nil {
			return err
		}
	}
	to, err := v.send(a.method, v.fill(a.to), in, header)
	if p, ok := errors.AsType[*problem](err); ok && p.Status == http.StatusPreconditionFailed {
		return errStale
	} else if err != nil {
		return err
	}
	if !a.link {
		http.Redirect(v.w, v.r, v.fill(a.on)+"?done="+a.name, http.StatusSeeOther)
		return nil
	}
	var given object
	if err := decode(&to.body, &given); err != nil {
		return err
	}
	v.render(http.StatusOK, "link", a.Title, object{"link": given, "back": v.fill(a.on)})
	return nil
}

// isMade reports whether the request with the key was done.
func (a action) isMade(v *visit, key string) (bool, error) {
	if a.made == "" {
		return false, nil
	}
	list, err := v.get(a.made + "&idempotency_key=" + key)
	return len(dataOf(object{"list": list}, "list")) > 0, err
}

// read returns the body of the request. The API judges the fields, except for the form of an amount.
func (a action) read(v *visit, before object) (object, error) {
	in := object{}
	for name, x := range a.body {
		if text, ok := x.(string); ok {
			x = v.value(text, before)
		}
		in[name] = x
	}
	wrong := &problem{Status: http.StatusUnprocessableEntity, Title: "A field is wrong"}
	for _, f := range a.Fields {
		if detail := f.read(strings.TrimSpace(v.r.PostForm.Get(f.Name)), before, in); detail != "" {
			wrong.Errors = append(wrong.Errors, fieldProblem{Pointer: f.Label, Detail: detail})
		}
	}
	if len(wrong.Errors) > 0 {
		return nil, wrong
	}
	return in, nil
}

// value replaces each {name} in the text by the value of the page's path, or of the object.
func (v *visit) value(text string, before object) string {
	for _, name := range []string{"account", "subscription", "period", "endpoint", "delivery", "event", "taken"} {
		value := v.r.PathValue(name)
		if value == "" && before[name] != nil {
			value = fmt.Sprint(before[name])
		}
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// line returns the command that makes the same change, for a POSIX shell.
func (a action) line(v *visit, before, in object) string {
	words := strings.Fields(a.command)
	for i, w := range words {
		words[i] = quote(v.value(w, before))
	}
	for _, f := range a.Fields {
		text := strings.TrimSpace(v.r.PostForm.Get(f.Name))
		if f.Flag == "" {
			f.Flag = "--" + strings.ReplaceAll(f.Name, "_", "-")
		}
		if text != "" && in[f.Name] != nil && f.Flag != "-" {
			words = append(words, f.Flag)
			if f.Kind != "check" {
				words = append(words, quote(text))
			}
		}
	}
	return strings.Join(words, " ")
}

// quote returns the word as a POSIX shell reads it.
func quote(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+,=", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
