package stripefake

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

const linesType = "application/x-ndjson"

// controls are the endpoints of the control API. It asks for no key.
func (f *Fake) controls() *http.ServeMux {
	mux := http.NewServeMux()
	var known []string
	handle := func(pattern string, do func(w http.ResponseWriter, r *http.Request) (any, error)) {
		known = append(known, pattern)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := do(w, r)
			writeControl(w, v, err)
		})
	}
	handle("GET /_fake/clock", func(http.ResponseWriter, *http.Request) (any, error) {
		return clockForm{Now: new(f.Now())}, nil
	})
	handle("POST /_fake/clock", f.controlClock)
	handle("GET /_fake/faults", func(http.ResponseWriter, *http.Request) (any, error) {
		faults := f.Faults()
		return formOf(&faults), nil
	})
	handle("POST /_fake/faults", f.controlFaults)
	handle("GET /_fake/requests", func(http.ResponseWriter, *http.Request) (any, error) { return f.Requests(), nil })
	handle("POST /_fake/intents/{id}/authenticate", answered(f.Authenticate))
	handle("POST /_fake/intents/{id}/finish", answered(f.Finish))
	handle("POST /_fake/refunds/{id}/finish", answered(f.FinishRefund))
	handle("POST /_fake/disputes", posted(func(_ *http.Request, in disputeForm) (any, error) {
		id, err := f.Dispute(in.Intent, in.Reason)
		return map[string]string{"id": id}, err
	}))
	handle("POST /_fake/disputes/{id}", posted(func(r *http.Request, in disputeForm) (any, error) {
		return in, f.CloseDispute(r.PathValue("id"), in.Status)
	}))
	handle("POST /_fake/accounts", posted(func(_ *http.Request, in accountForm) (any, error) {
		return in, f.Connect(in.ID, in.Platform)
	}))
	handle("POST /_fake/accounts/{id}", posted(func(r *http.Request, in accountForm) (any, error) {
		return in, f.SetVersion(r.PathValue("id"), in.Version)
	}))
	handle("POST /_fake/accounts/{id}/disconnect", posted(func(r *http.Request, in struct{}) (any, error) {
		return in, f.Disconnect(r.PathValue("id"))
	}))
	handle("POST /_fake/keys/revoke", posted(func(_ *http.Request, in keyForm) (any, error) {
		return struct{}{}, f.Revoke(in.Key)
	}))
	handle("POST /_fake/keys/restore", posted(func(_ *http.Request, in keyForm) (any, error) {
		return struct{}{}, f.Restore(in.Key)
	}))
	handle("POST /_fake/webhook_endpoints/{id}/roll", posted(func(r *http.Request, _ struct{}) (any, error) {
		secret, err := f.Roll(r.PathValue("id"))
		return map[string]string{"secret": secret}, err
	}))
	handle("POST /_fake/events/{id}/resend", posted(func(r *http.Request, _ struct{}) (any, error) {
		sent, err := f.Resend(r.PathValue("id"))
		return map[string]int{"sent": sent}, err
	}))
	handle("POST /_fake/webhooks/flush", posted(func(r *http.Request, _ struct{}) (any, error) {
		left, err := f.Flush(r.Context())
		return map[string]int{"waiting": left}, err
	}))
	mux.HandleFunc("GET /_fake/ledger", f.controlLedger)
	known = append(known, "GET /_fake/ledger")
	slices.SortFunc(known, api.ByPath)
	mux.HandleFunc("GET /_fake/{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeControl(w, Identity{"stripefake", NewestVersion, DefaultAccount, f.Now(), known, f.api.Endpoints()}, nil)
	})
	mux.HandleFunc("/_fake/", func(w http.ResponseWriter, r *http.Request) {
		writeControl(w, nil, &shape.Error{Status: http.StatusNotFound, Message: "there is no " + r.Method + " " +
			shape.Shown(r.URL.Path) + ": GET /_fake/ lists what there is"})
	})
	return mux
}

// posted decodes the posted T for the handler.
func posted[T any](do func(*http.Request, T) (any, error)) func(http.ResponseWriter, *http.Request) (any, error) {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		var in T
		if err := readJSON(w, r, &in); err != nil {
			return nil, err
		}
		return do(r, in)
	}
}

// answered decodes {"ok":…} for the object in the path.
func answered(do func(id string, ok bool) error) func(http.ResponseWriter, *http.Request) (any, error) {
	return posted(func(r *http.Request, in okForm) (any, error) {
		if in.OK == nil {
			return nil, errors.New(`want {"ok":true} or {"ok":false}`)
		}
		return in, do(r.PathValue("id"), *in.OK)
	})
}

func (f *Fake) serveControl(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_fake" {
		r.URL.Path = "/_fake/"
	}
	f.control.ServeHTTP(w, r)
}

func writeControl(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		if e, ok := errors.AsType[*shape.Error](err); ok {
			status = e.Status
		}
		v = errorForm{err.Error()}
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(shape.Encode(v)) // the caller may be gone
}

func (f *Fake) controlClock(w http.ResponseWriter, r *http.Request) (any, error) {
	var in clockForm
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	switch {
	case (in.Now == nil) == (in.Advance == nil):
		return nil, errors.New(`want either {"now":"2026-01-31T12:00:00Z"} or {"advance":"25h"}`)
	case in.Now != nil:
		f.SetNow(*in.Now)
	default:
		f.Advance(in.Advance.std())
	}
	return clockForm{Now: new(f.Now())}, nil
}

func (f *Fake) controlFaults(w http.ResponseWriter, r *http.Request) (any, error) {
	faults := f.Faults()
	if err := readJSON(w, r, formOf(&faults)); err != nil {
		return nil, err
	}
	return formOf(&faults), f.SetFaults(faults)
}

// controlLedger writes a line of JSON for every entry. No line ends it: the chunks of HTTP show a
// broken connection.
func (f *Fake) controlLedger(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", linesType)
	lines := json.NewEncoder(w)
	for e := range f.Ledger() {
		if lines.Encode(e) != nil {
			return
		}
	}
}
