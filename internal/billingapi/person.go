package billingapi

import (
	"context"
	"net/http"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// exportAccount sends everything that the store has of the account's person.
func (s *server) exportAccount(w http.ResponseWriter, r *web.Request) error {
	var f struct{}
	return s.scan(w, r, r.Read(&f), func(e *engine.Engine) (view.Object, error) {
		d, err := person.Export(r.Context(), e.Records, r.PathValue("account"))
		if err != nil {
			return nil, err
		}
		return view.Export(d), nil
	})
}

// eraseAccount takes the personal data of the account's person out of the store. A repeated request
// continues it.
func (s *server) eraseAccount(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Confirm string `json:"confirm"`
	}
	id := r.PathValue("account")
	x := form{[]error{r.Read(&f)}}
	if f.Confirm != id {
		x.add(billing.Invalid("confirm", "must be the account's ID, because this cannot be undone"))
	}
	if err := x.err(); err != nil {
		return err
	}
	return s.once(w, r, post{status: http.StatusOK, object: "accounts/" + id, asked: f, resumes: true,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			x, err := person.Erase(ctx, e.Records, id, false)
			if err != nil {
				return nil, err
			}
			return view.Erasure(x, false), nil
		}})
}
