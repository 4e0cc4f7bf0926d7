package billingapi

import (
	"net/http"

	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// exportAccount sends everything that the store has of the account's person. It scans tables, so that only one
// export or report is made at a time.
func (s *server) exportAccount(w http.ResponseWriter, r *web.Request) error {
	var f struct{}
	if err := r.Read(&f); err != nil {
		return err
	}
	if !s.reporting.CompareAndSwap(false, true) {
		return errReporting
	}
	defer s.reporting.Store(false)
	d, err := person.Export(r.Context(), s.Engine.Records, r.PathValue("account"))
	if err != nil {
		return err
	}
	return show(w, view.Export(d), nil)
}
