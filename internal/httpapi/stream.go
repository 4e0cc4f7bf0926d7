package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
func stream[T any](s *server, w http.ResponseWriter, r *http.Request, list iter.Seq2[T, error], limit int,
	form func(T) any) error {
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
		if n++; !out.write(form(v)) {
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
func (l *lines) write(v any) bool { return l.enc.Encode(View(v)) == nil }

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
	send(w, http.StatusOK, map[string]any{name: View(all), "more": more})
	return nil
}

var (
	errSilent = errors.New("the server fell silent")
	errCut    = errors.New("the list was cut off")
)

// The last line of a whole list, and the beginning of a failed one's: rows begin with
// another field.
var (
	endLine   = []byte(`{"end":true}`)
	faultLine = []byte(`{"error":`)
)

// list yields the values of a list's lines while they come. A list that broke off, or without its
// last line, ends with an error.
func list[F, T any](ctx context.Context, c *Client, path string, read func(*F) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for text, err := range c.lines(ctx, path) {
			if err == nil && bytes.Equal(text, endLine) {
				return
			}
			if err == nil && bytes.HasPrefix(text, faultLine) {
				err = faultOfLine(text)
			}
			form := new(F)
			if err == nil && readView(form, func(view any) error { return json.Unmarshal(text, view) }) != nil {
				err = noAnswer(c.base, errCut)
			}
			if err != nil {
				yield(none, err)
				return
			}
			if !yield(read(form), nil) {
				return
			}
		}
		yield(none, noAnswer(c.base, errCut))
	}
}

// lines yields the lines of an answer. An error comes last. A line is valid until the next.
// The caller's time for a line does not count against the server.
func (c *Client) lines(ctx context.Context, path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		silence := time.AfterFunc(c.timeout, func() { cancel(errSilent) })
		defer silence.Stop()
		response, err := c.send(ctx, http.MethodGet, path, nil, "Accept", linesType)
		if err != nil {
			yield(nil, withCause(ctx, err))
			return
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			yield(nil, readFault(response))
			return
		}
		in := bufio.NewScanner(response.Body)
		in.Buffer(make([]byte, 0, chunk), maxAnswer)
		for in.Scan() {
			silence.Stop()
			if !yield(in.Bytes(), nil) {
				return
			}
			silence.Reset(c.timeout)
		}
		if err := errors.Join(ctx.Err(), in.Err()); err != nil {
			yield(nil, noAnswer(c.base, withCause(ctx, fmt.Errorf("%w: %w", errCut, err))))
		}
	}
}

// withCause adds why ctx has ended, which a transport does not always tell.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
