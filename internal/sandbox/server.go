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

const writeTimeout = time.Minute // of an answer, or a part of a long one

// Serve serves the ledger, as listen.Serve does, and leaves it open. It authenticates no caller.
func Serve(ctx context.Context, l net.Listener, s Ledger, log *slog.Logger) error {
	return listen.Serve(ctx, l, listen.NewServer(Handler(s), writeTimeout+s.latency()), log)
}

// Handler serves the ledger under /v1. Latency and faults befall every call. A caller that goes away
// cancels a call only before its execution.
func Handler(s Ledger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathOpen, post(intentReply, (*openForm).request, s.Open))
	mux.HandleFunc("POST "+pathConfirm, post(intentReply, (*confirmForm).request, s.Confirm))
	mux.HandleFunc("POST "+pathCancel, post(intentReply, (*cancelForm).request, s.Cancel))
	mux.HandleFunc("POST "+pathRefund, post(reversalReply, (*refundForm).request, s.Refund))
	mux.HandleFunc("GET "+pathIntents+"{ref}", func(w http.ResponseWriter, r *http.Request) {
		in, err := s.Lookup(r.Context(), r.PathValue("ref"))
		answer(w, intentReply(in), err)
	})
	mux.HandleFunc("GET "+pathSuccesses, stream(intentReply, s.List))
	mux.HandleFunc("GET "+pathReversals, stream(reversalReply, s.Reversals))
	mux.HandleFunc("GET "+pathReversalsOf+"{ref}", func(w http.ResponseWriter, r *http.Request) { serveReversalsOf(s, w, r) })
	return mux
}

func intentReply(in billing.Intent) reply    { return reply{Intent: new(recordOf(Entry{Intent: in}))} }
func reversalReply(r billing.Reversal) reply { return reply{Return: new(recordOfReversal(r))} }

// post serves a call with a body of the form F, which stands for the request R.
func post[F, R, T any](line func(T) reply, read func(*F) (R, error),
	do func(context.Context, R) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		form := new(F)
		var request R
		var v T
		err := readForm(w, r, form)
		if err == nil {
			request, err = read(form)
		}
		if err == nil {
			v, err = do(r.Context(), request)
		}
		answer(w, line(v), err)
	}
}

// readForm requires the content type too, which a page in a browser cannot send without asking.
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

func answer(w http.ResponseWriter, a reply, err error) {
	status := http.StatusOK
	if err != nil {
		a = reply{}
		a.Error, status = formOfError(err)
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // a caller that has gone learns nothing
}

// stream serves a list line by line, as it comes.
func stream[T any](line func(T) reply,
	list func(context.Context, billing.ListRequest) iter.Seq2[T, error]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		since, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("since"))
		if err != nil {
			answer(w, reply{}, invalid("since must be an instant such as 2026-03-01T09:00:00Z"))
			return
		}
		out := newLines(w)
		for v, err := range list(r.Context(), billing.ListRequest{Since: since}) {
			switch {
			case err != nil && out.n == 0:
				answer(w, reply{}, err)
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
}

func serveReversalsOf(s Ledger, w http.ResponseWriter, r *http.Request) {
	list, err := s.ReversalsOf(r.Context(), r.PathValue("ref"))
	if err != nil {
		answer(w, reply{}, err)
		return
	}
	out := newLines(w)
	for _, made := range list {
		if out.write(reversalReply(made)) != nil {
			return
		}
	}
	_ = out.write(reply{End: true})
}

// lines writes an answer while it comes.
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
	if l.n%pageSize == 0 { // a list of any length reaches a caller that goes on reading
		_ = http.NewResponseController(l.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	l.n++
	return l.enc.Encode(v)
}
