package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/web"
)

// An object is a JSON object of the API. Numbers are json.Number.
type object = map[string]any

// A visit is one request for a page.
type visit struct {
	*Handler
	w   http.ResponseWriter
	r   *http.Request
	key *key.Key // of the session
}

// A problem is what a page says instead of what was asked for.
type problem struct {
	Status int
	Title  string         `json:"title"`
	Code   string         `json:"code"`
	Detail string         `json:"detail"`
	Errors []fieldProblem `json:"errors"`
}

type fieldProblem struct {
	Pointer   string `json:"pointer"`
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

var (
	errNoPage = &problem{Status: http.StatusNotFound, Title: "There is no such page", Detail: "Check the address, or search for what you need."}
	errHost   = &problem{Status: http.StatusMisdirectedRequest, Title: "This name is not one of the pages",
		Detail: "Open the pages by an address of this machine, or start duesday serve with --pages-url."}
	errCross = &problem{Status: http.StatusForbidden, Title: "The request came from another site",
		Detail: "Nothing was changed. Open the page here, and try again."}
	errBroken = &problem{Status: http.StatusInternalServerError, Title: "The page failed",
		Detail: "The reason is in the log of duesday serve."}
	errForm = &problem{Status: http.StatusBadRequest, Title: "The form could not be read", Detail: "Go back, and send it again."}
)

// A reply is the API's response.
type reply struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *reply) Header() http.Header    { return r.header }
func (r *reply) WriteHeader(status int) { r.status = max(r.status, status) }
func (r *reply) Write(text []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(text)
}
func (r *reply) SetWriteDeadline(time.Time) error { return nil }

// send asks the API, and returns its response or problem.
func (v *visit) send(method, path string, in any, header map[string]string) (*reply, error) {
	to := &reply{header: http.Header{}}
	if err := v.ask(to, method, path, in, header); err != nil {
		return nil, err
	}
	if to.status < http.StatusBadRequest {
		return to, nil
	}
	return nil, problemOf(to.status, to.body.Bytes())
}

// ask lets the API write its response. path is escaped and may have a query; in is the JSON body, or nil.
func (v *visit) ask(to http.ResponseWriter, method, path string, in any, header map[string]string) error {
	body := io.Reader(http.NoBody)
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(web.As(v.r.Context(), v.key), method, path, body)
	if err != nil {
		return err
	}
	r.RemoteAddr, r.Host = v.r.RemoteAddr, v.r.Host
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	v.o.API.ServeHTTP(to, r)
	return nil
}

func problemOf(status int, text []byte) error {
	p := &problem{Status: status}
	if err := json.Unmarshal(text, p); err != nil {
		return fmt.Errorf("pages: the API's problem cannot be read: %w", err)
	}
	return p
}

// get returns an object of the API. Each {name} in the path is the value of the page's own path.
func (v *visit) get(path string, query ...string) (o object, err error) {
	to, err := v.send(http.MethodGet, v.fill(path)+encode(query), nil, nil)
	if err != nil {
		return nil, err
	}
	return o, decode(&to.body, &o)
}

func decode(body io.Reader, to any) error {
	d := json.NewDecoder(body)
	d.UseNumber()
	return d.Decode(to)
}

// encode returns the query of pairs of names and values without the empty values.
func encode(pairs []string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Names that fill knows, besides those of the page's path: days from which on receipts and events are shown.
const (
	sixMonthsAgo = "six_months_ago"
	aYearAgo     = "a_year_ago"
	aWeekAgo     = "a_week_ago"
)

// fill replaces each {name} in an address by the escaped value of the page's path.
func (v *visit) fill(text string) string {
	path, query, _ := strings.Cut(text, "?")
	if path = v.filled(path, url.PathEscape); query == "" {
		return path
	}
	return path + "?" + v.filled(query, url.QueryEscape)
}

func (v *visit) filled(text string, form func(string) string) string {
	var filled strings.Builder
	for {
		before, after, found := strings.Cut(text, "{")
		if filled.WriteString(before); !found {
			return filled.String()
		}
		name, rest, _ := strings.Cut(after, "}")
		value := v.r.PathValue(name)
		if ago, is := map[string][2]int{sixMonthsAgo: {-6, 0}, aYearAgo: {-12, 0}, aWeekAgo: {0, -7}}[name]; is {
			value = v.o.Now().UTC().AddDate(0, ago[0], ago[1]).Format(time.DateOnly)
		}
		filled.WriteString(form(value))
		text = rest
	}
}

// fail shows the problem, or that the page is broken.
func (v *visit) fail(err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		if v.r.Context().Err() == nil {
			v.o.Log.WarnContext(v.r.Context(), "pages: a page could not be shown", "page", v.r.Pattern, "error", err)
		}
		p = errBroken
	}
	v.render(p.Status, "problem", p.Title, object{"problem": p})
}
