package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/listen"
)

const (
	readTimeout  = 30 * time.Second // of a request
	writeTimeout = time.Minute      // of an answer, or of a part of a long one
	idleTimeout  = 5 * time.Minute  // of a connection: longer than a Client keeps one, so that it is not closed under a request
)

// Serve lets Clients use the ledger, as listen.Serve serves, and leaves the sandbox open. It
// authenticates nobody.
func Serve(ctx context.Context, l net.Listener, s *Sandbox, log *slog.Logger) error {
	return listen.Serve(ctx, l, &http.Server{Handler: Handler(s), ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout + s.o.Latency, IdleTimeout: idleTimeout, MaxHeaderBytes: maxBody}, log)
}

// Handler serves the ledger under /v1. A call that the processor would not answer gets an
// answer here, which says so: each error has its code. The latency and the faults of the
// sandbox befall every call but that for the entries. A caller that goes away takes a call
// back only before it is executed.
func Handler(s *Sandbox) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathOpen, post(func(ctx context.Context, f *openForm) (billing.Intent, error) {
		r, err := f.request()
		if err != nil {
			return billing.Intent{}, err
		}
		return s.Open(ctx, r)
	}))
	mux.HandleFunc("POST "+pathConfirm, post(func(ctx context.Context, f *confirmForm) (billing.Intent, error) {
		return s.Confirm(ctx, f.request())
	}))
	mux.HandleFunc("POST "+pathCancel, post(func(ctx context.Context, f *cancelForm) (billing.Intent, error) {
		return s.Cancel(ctx, f.Ref)
	}))
	mux.HandleFunc("POST "+pathRefund, s.serveRefund)
	mux.HandleFunc("GET "+pathIntents+"{ref}", func(w http.ResponseWriter, r *http.Request) {
		in, err := s.Lookup(r.Context(), r.PathValue("ref"))
		answer(w, in, err)
	})
	mux.HandleFunc("GET "+pathSuccesses, s.serveSuccesses)
	mux.HandleFunc("GET "+pathReturns, s.serveReturns)
	mux.HandleFunc("GET "+pathReturnsOf+"{ref}", s.serveReturnsOf)
	mux.HandleFunc("GET "+pathEntries, s.serveEntries)
	return mux
}

// post serves a call that has a body of the form F.
func post[F any](do func(context.Context, *F) (billing.Intent, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		form := new(F)
		if err := readForm(w, r, form); err != nil {
			answer(w, billing.Intent{}, err)
			return
		}
		in, err := do(r.Context(), form)
		answer(w, in, err)
	}
}

// readForm wants the content type, too: a page in somebody's browser cannot send it
// without asking.
func readForm(w http.ResponseWriter, r *http.Request, form any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return invalid("the content type must be " + jsonType)
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return invalid("the body cannot be read: " + err.Error())
	}
	return decodeForm(text, form)
}

func answer(w http.ResponseWriter, in billing.Intent, err error) {
	answerWith(w, reply{Intent: recordOfIntent(in)}, err)
}

func answerWith(w http.ResponseWriter, a reply, err error) {
	status := http.StatusOK
	if err != nil {
		a = reply{}
		a.Error, status = formOfError(err)
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // a caller that is gone learns nothing, as it should
}

func (s *Sandbox) serveSuccesses(w http.ResponseWriter, r *http.Request) {
	since, err := parseSince(r.URL.Query().Get("since"))
	if err != nil {
		answer(w, billing.Intent{}, err)
		return
	}
	stream(w, s.List(r.Context(), billing.ListRequest{Since: since}), func(in billing.Intent) reply { return reply{Intent: recordOfIntent(in)} })
}

// stream writes a list line by line, while it comes.
func stream[T any](w http.ResponseWriter, list iter.Seq2[T, error], line func(T) reply) {
	out := newLines(w)
	for v, err := range list {
		switch {
		case err != nil && out.n == 0:
			answer(w, billing.Intent{}, err)
			return
		case err != nil:
			form, _ := formOfError(err)
			_ = out.write(reply{Error: form})
			return
		case out.write(line(v)) != nil:
			return
		}
	}
	_ = out.write(reply{End: true})
}

// serveEntries writes the lines as they are in a file, but for the keys. There is no line
// to end it: a connection that breaks off is seen in the chunks of HTTP.
func (s *Sandbox) serveEntries(w http.ResponseWriter, _ *http.Request) {
	out := newLines(w)
	for e := range s.Entries() {
		if out.write(recordOf(e)) != nil {
			return
		}
	}
}

// lines are an answer that is written while it comes.
type lines struct {
	w   http.ResponseWriter
	enc *json.Encoder
	n   int // lines written
}

func newLines(w http.ResponseWriter) *lines {
	w.Header().Set("Content-Type", linesType)
	return &lines{w: w, enc: json.NewEncoder(w)}
}

func (l *lines) write(v any) error {
	if l.n%pageSize == 0 {
		l.extend()
	}
	l.n++
	return l.enc.Encode(v)
}

// extend gives the next part its own time: a list of any length may be read by a caller
// that goes on reading.
func (l *lines) extend() {
	_ = http.NewResponseController(l.w).SetWriteDeadline(time.Now().Add(writeTimeout)) // without it the server's own deadline holds
}
