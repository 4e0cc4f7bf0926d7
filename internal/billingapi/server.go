// Package billingapi implements billing's routes of the HTTP API: accounts, subscriptions, periods,
// receipts, runs, endpoints, settings and keys.
//
// Each route calls the same function as the corresponding command. The package decides nothing about money.
// Package web defines the conventions of requests and responses.
package billingapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// Options configures the routes. All fields are required.
type Options struct {
	Engine   *engine.Engine
	Keys     *key.Ring
	Messages *delivery.Service
	Mails    *maillog.Log
	Runs     *Runs
	Render   func(context.Context, outbox.Effect) (subject, text string, err error) // a mail as it would be now
	Look     func(ctx context.Context) []status.Check                               // returns the latest health checks
}

type server struct {
	Options
	reporting atomic.Bool // a report is being made, which reads the whole store
	past      atomic.Pointer[past]
}

// Routes returns the routes. A key that is bound to a merchant cannot call them.
func Routes(o Options) []web.Route {
	s := &server{Options: o}
	all := slices.Concat(s.subscribers(), s.previews(), s.others(), s.deliveryRoutes())
	for i := range all {
		do := all[i].Do
		all[i].Do = func(w http.ResponseWriter, r *web.Request) error { return s.problem(r, do(w, r)) }
	}
	return all
}

func route(scope key.Scope, operation, pattern string, do web.Handler) web.Route {
	return web.Route{Pattern: pattern, Operation: operation, Scope: scope, Do: do}
}

// subscribers returns the routes for accounts and subscriptions.
func (s *server) subscribers() []web.Route {
	const subscriptions = "/v1/accounts/{account}/subscriptions"
	const one, period = subscriptions + "/{subscription}", subscriptions + "/{subscription}/periods/{period}"
	return []web.Route{
		route(key.Write, "createAccount", "POST /v1/accounts", s.createAccount),
		route(key.Read, "listAccounts", "GET /v1/accounts", s.accounts),
		route(key.Read, "listSubscriptions", "GET /v1/subscriptions", s.subscriptions),
		route(key.Read, "getAccount", "GET /v1/accounts/{account}", s.getAccount),
		route(key.Read, "listHistory", "GET /v1/accounts/{account}/history", s.history),
		route(key.Admin, "eraseAccount", "POST /v1/accounts/{account}/erase", s.eraseAccount),
		route(key.Admin, "exportAccount", "POST /v1/accounts/{account}/export", s.exportAccount),
		route(key.Write, "updateAccount", "PATCH /v1/accounts/{account}", s.updateAccount),
		route(key.Write, "attachPaymentMethod", "POST /v1/accounts/{account}/payment_methods", s.attach),
		route(key.Write, "createCardLink", "POST /v1/accounts/{account}/card_links", s.cardLink),
		route(key.Write, "createPortalLink", "POST /v1/accounts/{account}/portal_links", s.portalLink),
		route(key.Write, "createSubscription", "POST "+subscriptions, s.createSubscription),
		route(key.Read, "previewSubscription", "POST "+subscriptions+"/preview", s.previewSubscription),
		route(key.Read, "getSubscriptionsByAccount", "GET "+subscriptions, s.subscriptionsOf),
		route(key.Read, "getSubscription", "GET "+one, s.getSubscription),
		route(key.Write, "updateSubscription", "PATCH "+one, s.updateSubscription),
		route(key.Write, "changePlan", "POST "+one+"/plan", s.changePlan),
		route(key.Read, "previewPlan", "POST "+one+"/plan/preview", s.previewPlan),
		route(key.Write, "pauseSubscription", "POST "+one+"/pause", s.bare(billing.RequestPause, (*engine.Engine).Pause)),
		route(key.Write, "resumeSubscription", "POST "+one+"/resume", s.bare(billing.RequestNone, (*engine.Engine).Resume)),
		route(key.Write, "cancelSubscription", "POST "+one+"/cancel", s.cancel),
		route(key.Admin, "undoTakeover", "POST "+one+"/undo_takeover", s.undoTakeover),
		route(key.Write, "skipPeriod", "POST "+one+"/skip", s.skip),
		route(key.Charge, "chargeSubscription", "POST "+one+"/charge", s.charge),
		route(key.Read, "listPeriods", "GET "+one+"/periods", s.periods),
		route(key.Read, "getPeriod", "GET "+period, s.period),
		route(key.Charge, "chargePeriod", "POST "+period+"/charge", s.charge),
		route(key.Read, "provePeriod", "GET "+period+"/proof", s.proof),
		route(key.Charge, "createReceipt", "POST "+one+"/receipts", s.createReceipt),
	}
}

func (s *server) others() []web.Route {
	return []web.Route{
		route(key.Read, "getReceiptsByAccount", "GET /v1/receipts", s.receipts),
		route(key.Read, "getReceipt", "GET /v1/receipts/{number}", s.receipt),
		route(key.Charge, "createRefund", "POST /v1/receipts/{number}/refunds", s.refund),
		route(key.Read, "listRefunds", "GET /v1/refunds", s.refunds),
		route(key.Read, "getDuePaymentsByDate", "GET /v1/due/payments", s.due(schema.PaymentIndex, view.DuePayment)),
		route(key.Read, "getDueRemindersByDate", "GET /v1/due/reminders", s.due(schema.ReminderIndex, view.DueReminder)),
		route(key.Charge, "createRun", "POST /v1/runs", s.createRun),
		route(key.Read, "listRuns", "GET /v1/runs", s.runs),
		route(key.Read, "getRun", "GET /v1/runs/{run}", s.getRun),
		route(key.Read, "listUnpaid", "GET /v1/runs/{run}/unpaid", s.unpaid),
		route(key.Read, "listTakeovers", "GET /v1/takeovers", s.takeovers),
		route(key.Admin, "startTakeover", "POST /v1/takeovers", s.startTakeover),
		route(key.Read, "getOverview", "GET /v1/overview", s.overview),
		route(key.Read, "listMails", "GET /v1/mails", s.mails),
		route(key.Read, "getMail", "GET /v1/mails/{mail}", s.mail),
		route(key.Read, "getReport", "GET /v1/report", s.report),
		route(key.Read, "getPayoutReport", "GET /v1/report/payouts", s.payouts),
		route(key.Read, "getStatus", "GET /v1/status", s.status),
		route(key.Read, "getCharging", "GET /v1/charging", s.charging),
		route(key.Admin, "setCharging", "PUT /v1/charging", s.setCharging),
		route(key.Read, "getSettings", "GET /v1/settings", s.settings),
		route(key.Admin, "updateSettings", "PATCH /v1/settings", s.setSettings),
		route(key.Admin, "createKey", "POST /v1/keys", s.createKey),
		route(key.Admin, "listKeys", "GET /v1/keys", s.keys),
		route(key.Admin, "revokeKey", "DELETE /v1/keys/{key}", s.revokeKey),
	}
}

// show sends the value with 200, or returns err.
func show(w http.ResponseWriter, v any, err error) error {
	if err == nil {
		web.Send(w, http.StatusOK, v)
	}
	return err
}

// A post handles a POST that changes something.
type post struct {
	status int    // of the response if the request is finished
	object string // path of the created or changed object; "": do sets it
	asked  any    // decoded body
	do     func(ctx context.Context, e *engine.Engine) (any, error)

	// resumes means that do also handles a repeated request: it continues interrupted work and makes no
	// further attempt. Otherwise, a repeated request gets the current object.
	resumes bool
}

// accepted is the response to a stored request that waits for the processor or for a run.
type accepted struct{ answer any }

// once handles the request at most once for its idempotency key, with the current settings.
func (s *server) once(w http.ResponseWriter, r *web.Request, p post) error {
	e, err := s.Engine.Fresh(r.Context())
	if err != nil {
		return err
	}
	if isDry(r) {
		return s.rehearse(w, r, e, p)
	}
	do := func(ctx context.Context) (int, any, error) {
		v, err := p.do(ctx, e)
		if a, ok := v.(accepted); ok {
			return http.StatusAccepted, a.answer, err
		}
		return p.status, v, err
	}
	return r.Server.Once(w, r, web.Change{Object: p.object, Asked: p.asked, Do: do,
		Again: func(ctx context.Context, row *call.Row) (v any, err error) {
			if p.resumes {
				_, v, err = do(ctx)
				return v, err
			}
			return s.object(ctx, w, row.Object)
		}})
}

// load returns the object at the path, or store.ErrNotFound.
func (s *server) load(ctx context.Context, path string) (any, error) {
	switch part := strings.Split(path, "/"); {
	case part[0] == "accounts" && len(part) == 2:
		return s.Engine.Account(ctx, part[1])
	case part[0] == "accounts" && len(part) >= 4:
		return s.Engine.Subscription(ctx, billing.Name{Account: part[1], ID: part[3]})
	case part[0] == "runs" && len(part) == 2:
		for _, kind := range runKinds() {
			if found, err := job.Find(ctx, s.Engine, kind, part[1]); !errors.Is(err, store.ErrNotFound) {
				return found, err
			}
		}
	case part[0] == "keys" && len(part) == 2:
		for k, err := range s.Keys.All(ctx) {
			if err != nil || k.ID == part[1] {
				return k, err
			}
		}
	case part[0] == "endpoints" && len(part) == 2:
		return s.Messages.Endpoint(ctx, part[1])
	}
	return nil, store.ErrNotFound
}

// object returns the view of the current object at the path, without secrets.
func (s *server) object(ctx context.Context, w http.ResponseWriter, path string) (any, error) {
	found, err := s.load(ctx, path)
	if err != nil {
		return nil, err
	}
	switch x := found.(type) {
	case *billing.Account:
		return showAccount(w, x, nil)
	case *billing.Subscription:
		return showSubscription(w, x, nil)
	case *delivery.Endpoint:
		return showEndpoint(w, x, nil)
	case *job.Report:
		return viewRun(x), nil
	}
	return view.Key(found.(*key.Key)), nil
}

// tag sets the ETag header to the object's version.
func tag(w http.ResponseWriter, version int64) {
	w.Header().Set("ETag", web.Tag(version))
}
