package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

var errSilent = errors.New("the server fell silent")

// lines yields the lines of an answer while they come. An error comes last. A line is valid until
// the next. The caller's time over a line does not count as the server's silence.
func (c *Client) lines(ctx context.Context, path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		silence := time.AfterFunc(c.timeout, func() { cancel(errSilent) })
		defer silence.Stop()
		response, err := c.send(ctx, http.MethodGet, path, nil)
		if err != nil {
			yield(nil, withCause(ctx, err))
			return
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			a, err := readReply(response)
			if err == nil {
				_, err = a.read()
			}
			yield(nil, withCause(ctx, err))
			return
		}
		in := bufio.NewScanner(response.Body)
		in.Buffer(nil, maxReply)
		for in.Scan() && ctx.Err() == nil {
			silence.Stop()
			if !yield(in.Bytes(), nil) {
				return
			}
			silence.Reset(c.timeout)
		}
		if err := errors.Join(ctx.Err(), in.Err()); err != nil {
			yield(nil, withCause(ctx, fmt.Errorf("%w: the answer broke off: %w", billing.ErrUnknown, err)))
		}
	}
}

// withCause adds the cause of ctx's end, which a transport may leave out.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
