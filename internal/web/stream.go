package web

import (
	"bufio"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"
)

// An ending is the last line of a complete list.
type ending struct {
	End  bool   `json:"end"`                   // first, so that readers recognize the line
	More bool   `json:"has_more,omitempty"`    // only with a limit
	Next string `json:"next_cursor,omitempty"` // where the rest begins
}

const chunk = 32 << 10 // bytes of lines sent at once

// stream writes the list's rows as JSON lines while it reads them, and then the end.
func stream(w http.ResponseWriter, r *Request, list iter.Seq2[any, error], end *ending) error {
	out := bufio.NewWriterSize(part{w}, chunk)
	enc := json.NewEncoder(escaped{out})
	n := 0
	for v, err := range list {
		if err != nil && n == 0 {
			return err // nothing was sent yet
		}
		if err != nil {
			p, known := r.ProblemOf(err)
			if !known {
				r.Failed(err)
			}
			_ = errors.Join(enc.Encode(p.form(RequestID(r.Context()))), out.Flush()) // the caller may be gone
			return nil
		}
		if n++; enc.Encode(v) != nil {
			return nil // the caller is gone
		}
	}
	end.End = true
	_ = errors.Join(enc.Encode(end), out.Flush())
	return nil
}

// A part writes some of the lines with a new deadline, so a steady reader can read for a long time.
type part struct{ http.ResponseWriter }

func (p part) Write(text []byte) (int, error) {
	p.Header().Set("Content-Type", linesType)
	extend(p.ResponseWriter)
	return p.ResponseWriter.Write(text)
}

// extend sets a new deadline for the next write, however long the request has taken. If it cannot be set, the server's
// deadline for the whole request applies.
func extend(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// wantsLines reports whether the caller accepts a list as JSON lines.
func wantsLines(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Accept"), ";")
	return strings.TrimSpace(kind) == linesType
}

// A pageForm is a page of a list.
type pageForm struct {
	Data []any  `json:"data"`
	More bool   `json:"has_more"`
	Next string `json:"next_cursor,omitempty"`
}

// gather sends a page of a list.
func gather(w http.ResponseWriter, list iter.Seq2[any, error], end *ending) error {
	all := []any{}
	for v, err := range list {
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	Send(w, http.StatusOK, pageForm{all, end.More, end.Next})
	return nil
}
