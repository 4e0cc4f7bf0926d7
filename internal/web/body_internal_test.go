package web

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBodies_Budget: large bodies wait for their ends within the budget, more of them are refused, and
// small ones are taken all the same.
func TestBodies_Budget(t *testing.T) {
	s := New(Options{Paths: map[string]Handler{"/hook": func(w http.ResponseWriter, r *Request) error {
		return ReadBody(new(bytes.Buffer), w, r.Request, 1<<20)
	}}})
	if most := 1024*ownBody + s.left.Load(); most > 32<<20 { // the heap may grow to several times that
		t.Errorf("the bodies of 1024 connections may have %d bytes", most)
	}
	const large = 1 << 20
	s.left.Store(3 * (large - ownBody))
	post := func(in io.Reader) *httptest.ResponseRecorder {
		r, a := httptest.NewRequest("POST", "/hook", in), httptest.NewRecorder()
		s.ServeHTTP(a, r)
		return a
	}
	var ends []*io.PipeWriter
	answers := make(chan int, 3)
	for range 3 {
		in, out := io.Pipe()
		go func() { answers <- post(in).Code }()
		for _, text := range []string{strings.Repeat("a", large), ""} { // the second is read once the first is counted
			if _, err := io.WriteString(out, text); err != nil {
				t.Fatal(err)
			}
		}
		ends = append(ends, out)
	}
	for size, want := range map[int]int{ownBody + 1: 503, large: 503, ownBody: 200, 100: 200} {
		a := post(strings.NewReader(strings.Repeat("a", size)))
		closes := want == 503
		if a.Code != want || (a.Header().Get("Retry-After") != "") != closes || (a.Header().Get("Connection") == "close") != closes {
			t.Errorf("%d bytes: got %d %v, want %d", size, a.Code, a.Header(), want)
		}
	}
	for _, end := range ends {
		_ = end.Close()
		if got := <-answers; got != 200 {
			t.Errorf("a body within the budget: got %d", got)
		}
	}
	if got := s.left.Load(); got != 3*(large-ownBody) {
		t.Errorf("%d bytes are left, want all", got)
	}
}
