package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// What bodies take in memory: every request its own bytes, and beyond those all requests together.
// The number of connections bounds the first part. Stripe's events are of a few KiB: large bodies of
// strangers do not keep them out.
const (
	ownBody   = 16 << 10
	allBodies = 16 << 20
)

var errCrowded = &refusal{http.StatusServiceUnavailable, "unavailable", "too many large bodies at the moment: try again"}

// A body is that of a request, within the budget of all of them.
type body struct {
	io.ReadCloser
	left        *atomic.Int64 // bytes of the budget
	read, taken int64
}

// Read returns errCrowded once the budget is used up.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if more := b.read - ownBody - b.taken; more > 0 {
		b.taken += more
		if b.left.Add(-more) < 0 {
			return 0, errCrowded
		}
	}
	return n, err
}

func (b *body) release() { b.left.Add(b.taken) }

func (s *server) buffer() *bytes.Buffer {
	if b, ok := s.bodies.Get().(*bytes.Buffer); ok {
		return b
	}
	return new(bytes.Buffer)
}

// recycle keeps an unused buffer for the next event, unless a large event has grown it.
func (s *server) recycle(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		s.bodies.Put(b)
	}
}

// readInto reads the body of a request, whole or not at all.
func readInto(b *bytes.Buffer, w http.ResponseWriter, r *http.Request, most int64) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refusef(http.StatusUnsupportedMediaType, "encoding", "the body is encoded (%s): want it plain", e)
	}
	if r.ContentLength > most {
		return tooLarge(w, most)
	}
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most)); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return tooLarge(w, most)
		}
		if errors.Is(err, errCrowded) {
			w.Header().Set("Connection", "close")
			return errCrowded
		}
		return refusef(http.StatusBadRequest, "broken", "the body broke off")
	}
	return nil
}

// tooLarge has the connection closed: the rest of the body is not waited for.
func tooLarge(w http.ResponseWriter, most int64) error {
	w.Header().Set("Connection", "close")
	return refusef(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than %d bytes", most)
}
