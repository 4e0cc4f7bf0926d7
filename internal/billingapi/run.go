package billingapi

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

func runKinds() []billing.Kind {
	return []billing.Kind{billing.Payments, billing.Reminders, billing.Audits, billing.Adoptions}
}

func isJob(kind billing.Kind) bool { return kind == billing.Payments || kind == billing.Reminders }

var errKind = billing.Invalid("kind", "must be payments, reminders, verify or reconcile")

// Runs executes the runs that requests start, one at a time, in this process.
type Runs struct {
	job       func(ctx context.Context, kind billing.Kind, o job.Options) error
	reconcile func(ctx context.Context) (adopted int, err error)
	busy      atomic.Bool
	work      chan func(context.Context)
}

// NewRuns returns Runs that call daily for the daily jobs, and reconcile.
func NewRuns(daily func(context.Context, billing.Kind, job.Options) error, reconcile func(context.Context) (int, error)) *Runs {
	return &Runs{job: daily, reconcile: reconcile, work: make(chan func(context.Context), 1)}
}

// Run executes requested runs until ctx ends. The next daily job continues an interrupted one.
func (r *Runs) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-r.work:
			do(ctx)
			r.busy.Store(false)
		}
	}
}

const (
	firstZone   = 14 * time.Hour  // offset of the time zone in which each day begins first
	workers     = 16              // the default of duesday run
	recordEvery = 2 * time.Second // how often a run updates its record
	mostRuns    = 1000            // of each kind in a list
)

// createRun stores the run's record with the key, and then starts the run.
func (s *server) createRun(w http.ResponseWriter, r *web.Request) error {
	var f struct {
		Kind billing.Kind `json:"kind" decides:"date"`
		Date string       `json:"date" empty:"no"`
	}
	x := form{[]error{r.Read(&f)}}
	day := x.date("date", f.Date)
	if !slices.Contains(runKinds(), f.Kind) {
		x.add(errKind)
	} else if !isJob(f.Kind) && !r.Key.Scope.Includes(key.Admin) {
		return errAdmin
	}
	if day.After(civil.Of(s.Engine.Now().Add(firstZone))) || f.Date != "" && !isJob(f.Kind) {
		x.add(billing.Invalid("date", "must be a day that has begun; only payments and reminders accept a date"))
	}
	if err := x.err(); err != nil {
		return err
	}
	return s.once(w, r, post{asked: f,
		do: func(ctx context.Context, e *engine.Engine) (any, error) {
			v, err := s.start(ctx, e, f.Kind, day)
			return accepted{v}, err
		}})
}

// start stores the run's record and passes the run to Runs.
func (s *server) start(ctx context.Context, e *engine.Engine, kind billing.Kind, day civil.Date) (any, error) {
	if !s.Runs.busy.CompareAndSwap(false, true) {
		return nil, errBusy
	}
	taken := false // stays so after an error, and after a panic, which the server survives
	defer func() {
		if !taken {
			s.Runs.busy.Store(false)
		}
	}()
	if busy, _, err := worker.Busy(ctx, e.Sharing.Claims, kind); busy != nil || err != nil {
		return nil, cmp.Or(err, error(errBusy))
	}
	run := job.NewRun(ctx, e, kind, day)
	release, err := claim(ctx, e, run)
	if err != nil {
		return nil, err
	}
	defer func() {
		if !taken {
			release()
		}
	}()
	call.Of(ctx).Object = "runs/" + run.PathID()
	process := run.Process
	run.Process = "" // until the run begins
	if err := call.Commit(ctx, e.Store, run.Write(e.Table)); err != nil {
		return nil, err
	}
	run.Process = process
	begun := viewRun(&job.Report{Run: *run, State: job.Running})
	taken = true
	s.Runs.work <- func(ctx context.Context) {
		defer release()
		s.execute(ctx, e, run, day)
	}
	return begun, nil
}

// claim lets no process accept another run until release is called.
func claim(ctx context.Context, e *engine.Engine, run *billing.Run) (release func(), err error) {
	_, release, err = e.Sharing.Exclusive(ctx, e.Records, &billing.Run{Kind: "requested", ID: run.ID, Process: run.Process})
	if errors.As(err, new(*worker.BusyError)) {
		err = errBusy
	}
	return release, err
}

// execute runs the job or audit, and records its end unless the job has already done so.
func (s *server) execute(ctx context.Context, e *engine.Engine, run *billing.Run, day civil.Date) {
	var err error
	ctx = call.With(ctx, &call.Call{Actor: run.Actor})
	if !isJob(run.Kind) {
		err = s.inspect(ctx, e, run)
	} else if err = s.Runs.job(ctx, run.Kind, job.Options{ID: run.ID, Date: day, Workers: workers}); err == nil {
		return
	}
	always := context.WithoutCancel(ctx)
	if now, rerr := e.Run(always, run.Kind, run.ID); rerr == nil && !now.Ended.IsZero() {
		return
	}
	run.Ended, run.Completed = e.Now(), err == nil
	if run.Seen = run.Ended; err != nil {
		run.Reason = secret.MaskCards(err.Error())
	}
	if err = errors.Join(err, e.Store.Commit(always, run.Write(e.Table))); err != nil {
		e.Log.Error("a requested run failed", "run", run.ID, "kind", string(run.Kind), "error", err)
	}
}

// inspect executes a verify or reconcile run under a claim.
func (s *server) inspect(ctx context.Context, e *engine.Engine, run *billing.Run) error {
	claim := worker.NewClaim(e.Sharing.Claims, run)
	if err := claim.Hold(ctx); err != nil {
		return err
	}
	defer claim.End()
	seen := *run
	defer e.Sharing.Ticker.Every(recordEvery, func() {
		seen.Seen = e.Now()
		_ = e.Store.Commit(context.WithoutCancel(ctx), seen.Write(e.Table)) // the next update makes up for a failed one
	})()
	if run.Kind == billing.Adoptions {
		n, err := s.Runs.reconcile(ctx)
		run.Counts = map[engine.Outcome]int{"adopted": n}
		return err
	}
	a, err := e.Audit(ctx, func(int64) {})
	if err == nil {
		err = person.Audit(ctx, e.Records, a)
	}
	if err != nil {
		return err
	}
	run.Counts = map[engine.Outcome]int{"subscriptions": a.Subscriptions, "receipts": a.Receipts, "charges": a.Charges,
		"problems": len(a.Problems), "notes": len(a.Notes)}
	if len(a.Problems) > 0 {
		run.Reason = a.Problems[0].Account + "/" + a.Problems[0].Subscription + ": " + a.Problems[0].Detail
	}
	return nil
}

func viewRun(r *job.Report) view.Object {
	if isJob(r.Kind) {
		return view.Run(r)
	}
	v := view.Object{"id", r.PathID(), "state", view.StateOf(r), "kind", r.Kind, "date", r.Date, "process?", r.Process, "started_at", r.Started, "actor?", r.Actor,
		"seen_at?", r.Seen, "ended_at?", r.Ended, "detail?", r.Reason}
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		v = append(v, string(name), r.Counts[name])
	}
	return v
}

// placeOf returns the run's place in the list, which is ordered by start time.
func placeOf(r *job.Report) string { return view.Stamp(r.Started) + " " + r.ID }

// runs lists the latest runs, newest first.
func (s *server) runs(w http.ResponseWriter, r *web.Request) error {
	return finder[job.Report]{names: []string{"kind"}, place: placeOf, view: viewRun,
		path: func(x *job.Report) string { return "runs/" + x.PathID() },
		find: func(values url.Values, after string) (iter.Seq2[*job.Report, error], error) {
			var all []*job.Report
			asked := billing.Kind(values.Get("kind"))
			for _, kind := range runKinds() {
				if asked != "" && kind != asked {
					continue
				}
				found, err := job.Latest(r.Context(), s.Engine, kind, mostRuns)
				if err != nil {
					return nil, err
				}
				all = append(all, found...)
			}
			if asked != "" && !slices.Contains(runKinds(), asked) {
				return nil, errKind
			}
			slices.SortFunc(all, func(a, b *job.Report) int { return cmp.Compare(placeOf(b), placeOf(a)) })
			return sequence.Filter(sequence.Of(all), func(x *job.Report) bool { return after == "" || placeOf(x) < after }), nil
		}}.send(s, w, r)
}

func (s *server) getRun(w http.ResponseWriter, r *web.Request) error {
	v, err := s.object(r.Context(), w, "runs/"+r.PathValue("run"))
	return show(w, v, err)
}

// unpaid lists the periods that a payment run has left unpaid.
func (s *server) unpaid(w http.ResponseWriter, r *web.Request) error {
	run, err := job.Find(r.Context(), s.Engine, billing.Payments, r.PathValue("run"))
	if err != nil {
		return err
	}
	return web.List(r.Server, w, r, web.ListOptions[*job.Unpaid]{
		Open: func(_ url.Values, after string) (iter.Seq2[*job.Unpaid, error], error) {
			return job.ListUnpaid(r.Context(), s.Engine.Records, run.ID, after), nil
		},
		Place: (*job.Unpaid).Place,
		View:  func(p *job.Unpaid) any { return view.Unpaid(p) }})
}
