package httpapi

import (
	"bufio"
	"encoding/json"
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
	out := newLines(w)
	defer out.stop()
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
			out.write(f)
			return out.flush()
		}
		if n++; !out.write(v) {
			return nil // the caller is gone
		}
		if n == limit {
			break
		}
	}
	out.write(ending{true})
	return out.flush()
}

// lines are an answer written while it comes. Each part has its own time limit: a steady reader
// may read a list of any length.
type lines struct {
	w     http.ResponseWriter
	out   *bufio.Writer
	enc   *json.Encoder
	begun bool
	stall *time.Timer
}

func newLines(w http.ResponseWriter) *lines {
	l := &lines{w: w}
	l.out = bufio.NewWriterSize(part{l}, chunk)
	l.enc = json.NewEncoder(l.out)
	return l
}

// write reports whether the caller still reads.
func (l *lines) write(v any) bool { return l.enc.Encode(v) == nil }

// flush sends the gathered lines. It returns no error: a caller that is gone needs no answer.
func (l *lines) flush() error {
	_ = l.out.Flush()
	return nil
}

func (l *lines) stop() {
	if l.stall != nil {
		l.stall.Stop()
	}
}

// begin lifts the server's deadline for the whole answer, and sets one for each part.
func (l *lines) begin() {
	l.begun = true
	l.w.Header().Set("Content-Type", linesType)
	control := http.NewResponseController(l.w)
	if control.SetWriteDeadline(time.Time{}) != nil {
		return // the server's own holds
	}
	// long past: it ends the write
	l.stall = time.AfterFunc(writeTimeout, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
}

// A part sends a part of the lines.
type part struct{ *lines }

// Write implements io.Writer.
func (p part) Write(text []byte) (int, error) {
	if !p.begun {
		p.begin()
	} else if p.stall != nil {
		p.stall.Reset(writeTimeout)
	}
	return p.w.Write(text)
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
