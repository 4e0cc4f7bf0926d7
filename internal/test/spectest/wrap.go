package spectest

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
)

// Wrap returns a handler that fails the test if a response of h, or a request that h accepts, does not match
// openapi.json.
func (s *Spec) Wrap(t testing.TB, h http.Handler) http.Handler {
	var mu sync.Mutex
	ended := false // a response after the test's end cannot be reported
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, asked := &answer{ResponseWriter: w}, &bytes.Buffer{}
		x := &Exchange{Request: r.Clone(r.Context())}
		if r.Body != nil {
			r.Body = &body{r.Body, asked}
		}
		h.ServeHTTP(a, r)
		x.Asked, x.Status, x.Answer, x.Header = asked.Bytes(), a.status, a.text.Bytes(), w.Header().Clone()
		if x.Status == 0 {
			x.Status = http.StatusOK
		}
		err := s.Check(x)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && !ended {
			t.Error(err)
		}
	})
}

// A body records what is read from it.
type body struct {
	io.ReadCloser
	read *bytes.Buffer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Write(p[:n])
	return n, err
}

// An answer records what is written.
type answer struct {
	http.ResponseWriter
	status int
	text   bytes.Buffer
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(text []byte) (int, error) {
	a.text.Write(text)
	return a.ResponseWriter.Write(text)
}

// Unwrap returns the writer for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
