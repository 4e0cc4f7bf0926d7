package status_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
)

// messages gives the installation deliveries, with so many endpoints.
func (w *world) messages(endpoints int, types ...string) {
	w.t.Helper()
	w.in.Messages = delivery.New(delivery.Options{Store: w.store, Tables: w.tables, Now: func() time.Time { return w.now },
		Days: func(context.Context) (int, error) { return 30, nil }})
	for range endpoints {
		if _, _, err := w.in.Messages.Create(w.t.Context(), "https://example.com", types); err != nil {
			w.t.Fatal(err)
		}
	}
}

// endpoint sets an attribute of the first endpoint to so long ago, and its other attributes to the texts.
func (w *world) endpoint(ago time.Duration, attribute string, texts ...string) {
	w.t.Helper()
	for e, err := range w.in.Messages.All(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
		set := store.NewItem(store.Attribute{Name: attribute, Value: store.S(w.now.Add(-ago).Format("2006-01-02T15:04:05.000Z"))})
		for i := 0; i < len(texts); i += 2 {
			set.Set(texts[i], store.S(texts[i+1]))
		}
		w.commit(store.Update(w.engine.Table, store.Key{PK: "ENDPOINTS", SK: e.ID}, set, nil))
		break
	}
}

// A deaf store does not answer queries of partitions with the prefix.
type deaf struct {
	store.Store
	prefix string
}

func (d deaf) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	if strings.HasPrefix(q.Partition, d.prefix) {
		return func(yield func(store.Item, error) bool) { yield(nil, errors.New("no answer")) }
	}
	return d.Store.Query(ctx, q)
}

// deafTo has the installation's deliveries and engine read a store that does not answer these queries.
func (w *world) deafTo(prefix string) {
	w.engine.Store = deaf{w.store, prefix}
	w.in.Messages = delivery.New(delivery.Options{Store: w.engine.Store, Tables: w.tables, Now: func() time.Time { return w.now },
		Days: func(context.Context) (int, error) { return 30, nil }})
}

// TestLook_Endpoints holds the checks of endpoints and of their queue in each state.
func TestLook_Endpoints(t *testing.T) {
	row := func(w *world, ago time.Duration) {
		w.effect(outbox.Effect{Queue: outbox.Deliveries, ID: "e", Due: w.now.Add(-ago)})
	}
	for _, test := range []struct {
		check, name string
		given       func(*world)
		state       status.State
		found       string // "": the check is left out
	}{
		{"endpoints", "of a store without deliveries", func(*world) {}, "", ""},
		{"endpoints", "none", func(w *world) { w.messages(0) }, "", ""},
		{"endpoints", "two", func(w *world) { w.messages(2) }, status.OK, "2, none of which"},
		{"endpoints", "paused by a person", func(w *world) {
			w.messages(2)
			w.endpoint(time.Hour, schema.PausedDate, schema.Reason, delivery.ReasonRequested)
		}, status.OK, "1, none of which"},
		{"endpoints", "all paused by a person", func(w *world) {
			w.messages(1)
			w.endpoint(time.Hour, schema.PausedDate, schema.Reason, delivery.ReasonRequested)
		}, "", ""},
		{"endpoints", "failing for a moment", func(w *world) {
			w.messages(1)
			w.endpoint(time.Hour-time.Second, schema.FailingDate)
		}, status.OK, "1, none of which"},
		{"endpoints", "failing for an hour", func(w *world) {
			w.messages(2)
			w.endpoint(time.Hour, schema.FailingDate)
		}, status.Warning, "all deliveries to ep_"},
		{"endpoints", "a message given up", func(w *world) {
			w.messages(2)
			w.endpoint(24*time.Hour-time.Second, schema.DeadDate)
		}, status.Wrong, "messages to ep_"},
		{"endpoints", "a message given up yesterday", func(w *world) {
			w.messages(1)
			w.endpoint(24*time.Hour, schema.DeadDate)
		}, status.OK, "1, none of which"},
		{"endpoints", "gone, though another fails", func(w *world) {
			w.messages(2)
			w.endpoint(time.Minute, schema.PausedDate, schema.Reason, delivery.ReasonGone)
		}, status.Wrong, "ep_"},
		{"endpoints", "paused after days", func(w *world) {
			w.messages(1)
			w.endpoint(time.Minute, schema.PausedDate, schema.Reason, delivery.ReasonFailing)
		}, status.Wrong, "ep_"},
		{"endpoints", "damaged", func(w *world) {
			w.messages(1)
			w.endpoint(0, schema.Until, schema.CreatedDate, "yesterday")
		}, status.Wrong, "ep_"},
		{"endpoints", "no answer", func(w *world) {
			w.messages(1)
			w.deafTo("ENDPOINTS")
		}, status.Unknown, "cannot be read: read the endpoints: no answer"},
		{"deliveries", "of a store without deliveries", func(w *world) { row(w, 2*time.Hour) }, "", ""},
		{"deliveries", "without an endpoint", func(w *world) {
			w.messages(0)
			row(w, 2*time.Hour)
		}, "", ""},
		{"deliveries", "none", func(w *world) { w.messages(1) }, status.OK, "nothing is late"},
		{"deliveries", "due later", func(w *world) {
			w.messages(1)
			row(w, -time.Hour)
		}, status.OK, "nothing is late"},
		{"deliveries", "due", func(w *world) {
			w.messages(1)
			row(w, time.Hour)
		}, status.OK, "the oldest row has waited for 60 min"},
		{"deliveries", "late", func(w *world) {
			w.messages(1)
			row(w, time.Hour+time.Minute)
		}, status.Wrong, "the oldest row has waited for"},
		{"deliveries", "late for a damaged endpoint", func(w *world) {
			w.messages(1)
			w.endpoint(0, schema.Until, schema.CreatedDate, "yesterday")
			row(w, time.Hour+time.Minute)
		}, status.Wrong, "the oldest row has waited for"},
		{"deliveries", "unreadable", func(w *world) {
			w.messages(1)
			w.bury(outbox.Deliveries)
		}, status.Wrong, "1 given up"},
		{"deliveries", "no answer about endpoints", func(w *world) {
			w.messages(1)
			w.deafTo("ENDPOINTS")
		}, status.Unknown, "cannot be read"},
		{"deliveries", "no answer of the queue", func(w *world) {
			w.messages(1)
			w.deafTo("WHK#")
		}, status.Unknown, "cannot be read"},
	} {
		t.Run(test.check+" "+test.name, func(t *testing.T) {
			w := newWorld(t)
			test.given(w)
			c := w.check(test.check)
			if c.Text != "" && c.State != test.state || !strings.HasPrefix(c.Text, test.found) || (c.Text == "") != (test.found == "") {
				t.Errorf("%+v, want %s, %q", c, test.state, test.found)
			}
		})
	}
}

// TestMail_RunLate: endpoints hear that a daily job is late at most once a day, whichever process tells, in the
// commit that notes it, and also where there is no operator. They hear nothing of other checks.
func TestMail_RunLate(t *testing.T) {
	w := newWorld(t)
	days, disk := status.Check{Name: "days", State: status.Wrong}, status.Check{Name: "disk", State: status.Wrong}
	late := func() (all []string) {
		t.Helper()
		o := outbox.New(w.store, w.tables.Outbox, func() time.Time { return w.now }, nil, nil).On(outbox.Deliveries)
		for e, err := range o.Waiting(t.Context()) {
			var events []delivery.Event
			if err = errors.Join(err, json.Unmarshal([]byte(e.Data["events"]), &events)); err != nil {
				t.Fatal(err)
			}
			for _, x := range events {
				body, _ := json.Marshal(x)
				all = append(all, e.Created.Format("02 15:04 ")+string(body))
			}
		}
		slices.Sort(all)
		return all
	}
	var want []string
	tell := func(hears bool, wrong ...status.Check) {
		t.Helper()
		if _, err := w.in.Mail(t.Context(), wrong, false); err != nil {
			t.Fatal(err)
		}
		if hears {
			want = append(want, w.now.Format("02 15:04 ")+`{"type":"run.late","data":{"check":"days"}}`)
		}
		if got := late(); !slices.Equal(got, want) {
			t.Errorf("%s: told %q, want %q", w.now.Format("02 15:04"), got, want)
		}
	}
	w.messages(0)
	tell(false, days)
	w.messages(1, "period.paid")
	tell(false, days) // no endpoint wants it, and the day counts as told
	w.now = w.now.Add(25 * time.Hour)
	w.messages(1, "run.*")
	tell(false, disk)
	dying := &dyingStore{Store: w.store}
	w.engine.Store = dying
	if _, err := w.in.Mail(t.Context(), []status.Check{days}, false); err == nil || len(late()) > 0 {
		t.Errorf("a process that dies before its commit: %v", err) // nothing was noted
	}
	dying.left = 1
	tell(true, disk, days)
	w.engine.Store = w.store
	tell(false, days, status.Check{Name: "mail", State: status.Wrong})
	w.in = w.serving()
	w.messages(0) // another process
	tell(false, days)
	w.now = w.now.Add(25 * time.Hour)
	w.set("operator", "ops@example.com")
	tell(true, days)
}

// A dyingStore makes the first commits only.
type dyingStore struct {
	store.Store
	left int
}

func (d *dyingStore) Commit(ctx context.Context, writes ...store.Write) error {
	if d.left--; d.left < 0 {
		return errGone
	}
	return d.Store.Commit(ctx, writes...)
}
