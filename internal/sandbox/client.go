package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/billing"
)

// DefaultTimeout is how long a Client waits for an answer, and for each next part of a list.
const DefaultTimeout = 30 * time.Second

// A Client is a billing.Processor and Refunder over the ledger that a server has open. It is safe for
// concurrent use.
//
// ErrNotExecuted is the server's own answer, or means that no connection was made. Any other
// failure to get a readable answer is ErrUnknown.
type Client struct {
	base    string // http://HOST:PORT
	http    *http.Client
	timeout time.Duration
}

var (
	_ billing.Processor = (*Client)(nil)
	_ billing.Refunder  = (*Client)(nil)
)

// Connect returns a Client of the server at an address of ParseServer. It sends nothing yet.
func Connect(base string) *Client {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	return &Client{base: base, timeout: DefaultTimeout, http: &http.Client{
		Transport: &http.Transport{ // without a proxy: it connects to the given address
			DialContext: dialer.DialContext, MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, IdleConnTimeout: time.Minute,
			DisableCompression: true, MaxResponseHeaderBytes: maxBody,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections. The server goes on.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

func (c *Client) Open(ctx context.Context, r billing.OpenRequest) (billing.Intent, error) {
	return ask(ctx, c, checkOpen(r), pathOpen, formOfOpen(r), (*reply).read)
}

func (c *Client) Confirm(ctx context.Context, r billing.ConfirmRequest) (billing.Intent, error) {
	return ask(ctx, c, cmp.Or(checkConfirm(r), checkRef(r.Ref)), pathConfirm, confirmForm(r), (*reply).read)
}

func (c *Client) Cancel(ctx context.Context, ref string) (billing.Intent, error) {
	return ask(ctx, c, checkRef(ref), pathCancel, cancelForm{ref}, (*reply).read)
}

func (c *Client) Lookup(ctx context.Context, ref string) (billing.Intent, error) {
	return ask(ctx, c, checkRef(ref), pathIntents+escapeRef(ref), nil, (*reply).read)
}

// List yields while the answer comes. A list cut short ends with ErrUnknown.
func (c *Client) List(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Intent, error] {
	return replies(ctx, c, checkList(r), pathSuccesses+querySince(r.Since), (*reply).read)
}

func (c *Client) Refund(ctx context.Context, r billing.RefundRequest) (billing.Reversal, error) {
	form := refundForm{Key: r.Key, ID: r.ID, Ref: r.Ref, Amount: r.Amount.Decimal(), Currency: r.Amount.Currency().Code(),
		Reason: string(r.Reason)}
	return ask(ctx, c, cmp.Or(checkRefund(r), checkRef(r.Ref)), pathRefund, form, (*reply).readReversal)
}

func (c *Client) ReversalsOf(ctx context.Context, ref string) (list []billing.Reversal, err error) {
	return billing.Gather(replies(ctx, c, checkRef(ref), pathReversalsOf+escapeRef(ref), (*reply).readReversal))
}

// Reversals yields while the answer comes. A list cut short ends with ErrUnknown.
func (c *Client) Reversals(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Reversal, error] {
	return replies(ctx, c, checkList(r), pathReversals+querySince(r.Since), (*reply).readReversal)
}

func (c *Client) latency() time.Duration { return 0 }

// replies yields the lines of a list while they come. One cut short ends with ErrUnknown.
func replies[T any](ctx context.Context, c *Client, refusal error, path string,
	read func(*reply) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if refusal != nil {
			yield(none, refusal)
			return
		}
		for text, err := range c.lines(ctx, path) {
			var a reply
			if err == nil {
				err = json.Unmarshal(text, &a)
			}
			if err == nil && a.End {
				return
			}
			err = cmp.Or(err, a.Error.err())
			v := none
			if err == nil {
				v, err = read(&a)
			}
			if err = asUnknown(err); !yield(v, err) || err != nil {
				return
			}
		}
		yield(none, fmt.Errorf("%w: the list has no end", billing.ErrUnknown))
	}
}

// ask sends one request and reads its one answer. With a refusal it sends nothing: JSON cannot carry
// every text.
func ask[T any](ctx context.Context, c *Client, refusal error, path string, form any,
	read func(*reply) (T, error)) (v T, err error) {
	if refusal != nil {
		return v, refusal
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.send(ctx, path, form)
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	a, err := readReply(response)
	if err == nil {
		v, err = read(a)
	}
	return v, asUnknown(err)
}

func (c *Client) send(ctx context.Context, path string, form any) (*http.Response, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		text, err := json.Marshal(form)
		if err != nil {
			return nil, invalid(err.Error())
		}
		method, body = http.MethodPost, bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, invalid(err.Error())
	}
	if form != nil {
		r.Header.Set("Content-Type", jsonType)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.unanswered(err)
	}
	return response, nil
}

// unanswered returns the error of a request without an answer. After a failed dial nothing was
// sent: the transport sends a request with a body again only if it wrote nothing of it.
func (c *Client) unanswered(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // it repeats the request
		err = wrapped.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return asLost(fmt.Errorf("%w: no sandbox is served at %s: %w", billing.ErrNotExecuted, c.base, err))
	}
	return asLost(fmt.Errorf("%w: %w", billing.ErrUnknown, err))
}

// errLost: the connection to the server is gone.
var errLost = errors.New("the connection is lost")

// A lostError is errLost, in the words of another error.
type lostError struct{ error }

func (e lostError) Unwrap() []error { return []error{e.error, errLost} }

// asLost returns the error as errLost, unless the caller has ended the wait.
func asLost(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return lostError{err}
}

// readReply reads an answer of one object, or the error in it. Another form is ErrUnknown.
func readReply(response *http.Response) (*reply, error) {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return nil, asLost(fmt.Errorf("%w: %w", billing.ErrUnknown, err))
	}
	var a reply
	if err := json.Unmarshal(text, &a); err != nil || (a.Error == nil) != (response.StatusCode == http.StatusOK) {
		return nil, fmt.Errorf("%w: the answer is none of a sandbox's: %s", billing.ErrUnknown, response.Status)
	}
	return &a, a.Error.err()
}

func (a *reply) read() (billing.Intent, error) {
	if a.Intent == nil {
		return billing.Intent{}, errors.New("the answer has no intent")
	}
	return a.Intent.readIntent()
}

func (a *reply) readReversal() (billing.Reversal, error) {
	if a.Return == nil {
		return billing.Reversal{}, errors.New("the answer has no refund or dispute")
	}
	return a.Return.readReversal()
}

// asUnknown keeps the errors of a processor. Any other means an unreadable answer: ErrUnknown.
func asUnknown(err error) error {
	for _, c := range codes {
		if err == nil || errors.Is(err, c.err) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", billing.ErrUnknown, err)
}

// escapeRef also escapes dots: paths drop a name of dots alone.
func escapeRef(ref string) string { return strings.ReplaceAll(url.PathEscape(ref), ".", "%2E") }

// checkRef refuses a ref that no ledger holds.
func checkRef(ref string) error {
	if ref == "" || !utf8.ValidString(ref) {
		return fmt.Errorf("%w: %.64q", billing.ErrNoIntent, ref)
	}
	return nil
}

var errSilent = errors.New("the server fell silent")

// lines yields the lines of an answer while they come. An error comes last. A line is valid until
// the next. The caller's time over a line does not count as the server's silence.
func (c *Client) lines(ctx context.Context, path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		silence := time.AfterFunc(c.timeout, func() { cancel(errSilent) })
		defer silence.Stop()
		response, err := c.send(ctx, path, nil)
		if err != nil {
			yield(nil, withCause(ctx, err))
			return
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			_, err := readReply(response)
			yield(nil, withCause(ctx, err))
			return
		}
		in := bufio.NewScanner(response.Body)
		in.Buffer(nil, maxReply)
		in.Split(wholeLines)
		for in.Scan() && ctx.Err() == nil {
			silence.Stop()
			if !yield(in.Bytes(), nil) {
				return
			}
			silence.Reset(c.timeout)
		}
		if err := errors.Join(ctx.Err(), in.Err()); err != nil {
			yield(nil, withCause(ctx, asLost(fmt.Errorf("%w: the answer broke off: %w", billing.ErrUnknown, err))))
		}
	}
}

// wholeLines splits off lines that have their newline. An answer that breaks off has half a line.
func wholeLines(text []byte, _ bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1, text[:i], nil
	}
	return 0, nil, nil
}

// withCause adds the cause of ctx's end, which a transport may leave out.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
