package httpapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"
)

// An ending is the last line of a whole list: a list without it was cut off.
type ending struct {
	End bool `json:"end"` // first: it tells the line from others
}

const (
	listLines   = 100  // of a list in one object, where nobody says
	maxList     = 1000 // of a list in one object
	maxStreamed = 1 << 30
	chunk       = 32 << 10 // bytes of lines sent at once
)

// stream writes a list as lines of JSON while it comes, up to limit lines; limit 0 means all.
func stream[T any](s *server, w http.ResponseWriter, r *http.Request, list iter.Seq2[T, error], limit int) error {
	out := bufio.NewWriterSize(part{w}, chunk)
	enc := json.NewEncoder(out)
	n := 0
	for v, err := range list {
		if err != nil && n == 0 {
			return err // nothing was sent yet
		}
		if err != nil {
			_, f, known := faultOf(err)
			if !known {
				s.logFailure(r, err)
			}
			_ = errors.Join(enc.Encode(f), out.Flush()) // a caller that is gone needs no answer
			return nil
		}
		if n++; enc.Encode(v) != nil {
			return nil // the caller is gone
		}
		if n == limit {
			break
		}
	}
	_ = errors.Join(enc.Encode(ending{true}), out.Flush())
	return nil
}

// A part sends a part of the lines. Each has its own time limit: a steady reader may read a list of
// any length.
type part struct{ http.ResponseWriter }

// Write implements io.Writer.
func (p part) Write(text []byte) (int, error) {
	p.Header().Set("Content-Type", linesType)
	// Where it cannot be set, the server's own for the whole answer holds.
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.ResponseWriter.Write(text)
}

// wantsLines reports whether the caller takes a list as lines.
func wantsLines(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Accept"), ";")
	return strings.TrimSpace(kind) == linesType
}

// gather sends a list of up to limit things as one object: the things under the name, and
// whether there are more.
func gather[T any](w http.ResponseWriter, list iter.Seq2[T, error], limit int, name string) error {
	all, more := []T{}, false
	for v, err := range list {
		if err != nil {
			return err
		}
		if more = len(all) == limit; more {
			break
		}
		all = append(all, v)
	}
	send(w, http.StatusOK, map[string]any{name: all, "more": more})
	return nil
}
