package pages

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/money"
)

//go:embed templates
var templates embed.FS

// pagesOf holds the template of each page, each with the layout.
var pagesOf = func() map[string]*template.Template {
	base := template.Must(template.New("layout").Funcs(functions).ParseFS(templates, "templates/layout.html", "templates/part_*.html"))
	all := map[string]*template.Template{}
	entries, _ := templates.ReadDir("templates") // embedded
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".html")
		if name != "layout" && !strings.HasPrefix(name, "part_") {
			all[name] = template.Must(template.Must(base.Clone()).ParseFS(templates, path.Join("templates", e.Name())))
		}
	}
	return all
}()

// functions are those of the templates.
var functions = template.FuncMap{
	"money": amountOf, "amounts": amountsOf, "amountsWith": amountsWith, "outcome": outcomeOf, "nextOf": nextOf, "pageOf": pageOf, "time": instant, "at": at, "static": func(name string) string { return staticPath + names[name] },
	"words": func(name any) string { text, _ := name.(string); return strings.ReplaceAll(text, "_", " ") }, "list": func(all ...any) []any { return all },
	"dict": dict, "quote": func(x any) string { text, _ := x.(string); return quote(text) }, "navigation": navigation, "isTime": func(name string) bool { return strings.HasSuffix(name, "_at") || name == "at" }, "isList": func(x any) bool { _, is := x.([]any); return is }, "isBool": func(x any) bool { _, is := x.(bool); return is }, "yesNo": yesNo, "isObject": func(x any) bool { _, is := x.(object); return is },
	"isMoney": func(x any, name string) bool { _, is := x.(json.Number); return is && isAmount(name) }, "query": func(q url.Values, name, value string) template.URL { return with(q, name, value) },
}

// navigation returns the lists and pages that the key sees.
func navigation(k *key.Key) []string {
	if k.Merchant != "" {
		return []string{"purchases", "payments", "events"}
	}
	list := []string{"subscriptions", "accounts", "runs", "merchants", "purchases", "payments", "events", "mails"}
	if k.Scope.Includes(key.Admin) {
		list = append(list, "endpoints", "deliveries")
	}
	return append(list, "installation")
}

// amountOf formats minor units of a currency, such as 12.99 EUR.
func amountOf(minor, currency any) string {
	n, _ := minor.(json.Number)
	code, _ := currency.(string)
	units, err := n.Int64()
	c, wrong := money.ParseCurrency(code)
	if err != nil || wrong != nil {
		return strings.TrimSpace(n.String() + " " + code)
	}
	return money.New(units, c).String()
}

// amountsOf formats amounts by currency, such as 12.99 EUR · 5.00 GBP.
func amountsOf(x any) string {
	of, _ := x.(object)
	var all []string
	for _, code := range slices.Sorted(maps.Keys(of)) {
		all = append(all, amountOf(of[code], code))
	}
	return strings.Join(all, " · ")
}

// instant formats a time of the API to the second. Times are UTC.
func instant(x any) string {
	text, _ := x.(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// yesNo returns a boolean of the API for people. Charging is a switch.
func yesNo(name string, x any) string {
	texts := map[any]string{true: "yes", false: "no"}
	if name == "charging" {
		texts = map[any]string{true: "on", false: "off"}
	}
	return texts[x]
}

// at returns the path of the parts.
func at(parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		text, _ := part.(string)
		if n, is := part.(json.Number); is {
			text = n.String()
		}
		b.WriteString("/" + url.PathEscape(text))
	}
	return b.String()
}

// dict returns an object of pairs of names and values.
func dict(pairs ...any) object {
	o := object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		o[pairs[i].(string)] = pairs[i+1]
	}
	return o
}

// with returns the query with the value of one parameter, on the first page.
func with(q url.Values, name, value string) template.URL {
	next := url.Values{}
	for n, v := range q {
		if n != "cursor" {
			next[n] = v
		}
	}
	if next.Set(name, value); value == "" {
		next.Del(name)
	}
	return template.URL("?" + next.Encode()) // escaped
}

// render sends the page with the given name and title.
func (v *visit) render(status int, name, title string, data object) {
	all := object{"title": title, "key": v.key, "path": v.r.URL.Path, "q": "", "cards": v.o.Stripe != ""}
	maps.Copy(all, data)
	var b bytes.Buffer
	if err := pagesOf[name].ExecuteTemplate(&b, "layout", all); err != nil {
		v.o.Log.ErrorContext(v.r.Context(), "pages: a template failed", "page", name, "error", err)
		http.Error(v.w, "The page failed. The reason is in the log of duesday serve.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // the browser may be gone
}
