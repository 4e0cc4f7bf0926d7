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
	"time"
)

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
			if err == nil && json.Unmarshal(text, form) != nil {
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
