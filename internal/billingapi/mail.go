package billingapi

import (
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// mails lists ended mail, newest first, or the mail that waits or is held, by its due time.
func (s *server) mails(w http.ResponseWriter, r *web.Request) error {
	var f maillog.Filter
	return web.List(r.Server, w, r, web.ListOptions[*maillog.Mail]{Names: []string{"account", "state", "from", "to"},
		Place: func(m *maillog.Mail) string { return m.Place }, View: func(m *maillog.Mail) any { return view.Mail(m) },
		Keep: func(m *maillog.Mail) bool { return f.Keeps(m) },
		Open: func(values url.Values, after string) (iter.Seq2[*maillog.Mail, error], error) {
			var x form
			from, to := x.date("from", values.Get("from")), x.date("to", values.Get("to"))
			f = maillog.Filter{Account: values.Get("account"), State: values.Get("state")}
			if !from.IsZero() {
				f.From = from.In(time.UTC)
			}
			if !to.IsZero() {
				f.To = to.AddDays(1).In(time.UTC)
			}
			if !from.IsZero() && !to.IsZero() && from.After(to) {
				x.add(billing.Invalid("from", "must not be after to"))
			}
			if f.State != "" && !maillog.IsState(f.State) {
				x.add(billing.Invalid("state", "must be "+strings.Join(maillog.States(), ", ")))
			}
			return s.Mails.List(r.Context(), f, after), x.err()
		}})
}

const (
	renderedAgain = "This text was rendered now, with the current templates, settings and customer. The mail that was sent may differ. " +
		"An address at link.invalid stands for a link that only a delivery makes."
	textGone = "The text cannot be rendered, because the record has only the mail's outcome."
)

// mail sends one mail, with its text as it would be now.
func (s *server) mail(w http.ResponseWriter, r *web.Request) error {
	m, err := s.Mails.Find(r.Context(), r.PathValue("mail"))
	if err != nil {
		return err
	}
	subject, text, note := "", "", textGone
	if m.HasText() {
		if subject, text, err = s.Render(r.Context(), m.Effect); err != nil {
			note = "The text cannot be rendered: " + r.WithoutValues(err.Error())
		} else {
			note = renderedAgain
		}
	}
	return show(w, append(view.Mail(m), "subject?", subject, "text?", text, "note", note), nil)
}
