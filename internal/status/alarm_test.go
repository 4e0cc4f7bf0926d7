package status_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/status"
)

// subjects returns the subjects of the mails to the operator so far, the oldest first.
func (w *world) subjects() []string {
	w.t.Helper()
	var all []outbox.Effect
	o := outbox.New(w.store, w.tables.Outbox, func() time.Time { return w.now }, nil, nil)
	for e, err := range o.Waiting(w.t.Context()) {
		if err != nil || e.Data[outbox.DataEmail] != "ops@example.com" || e.Kind != outbox.KindOperator {
			w.t.Errorf("%+v, %v", e, err)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b outbox.Effect) int { return strings.Compare(a.ID, b.ID) })
	list := []string{}
	for _, e := range all {
		list = append(list, e.Data[outbox.DataSubject])
	}
	return list
}

// TestMail: the operator is told once a day of each check that is wrong, of several in one mail, and once
// that all is well, however many processes look and however often they start.
func TestMail(t *testing.T) {
	w := newWorld(t)
	want := []string{}
	disk, mail := status.Check{Name: "disk", State: status.Wrong, Text: "full", Next: "make room"}, status.Check{Name: "mail", State: status.Wrong}
	tell := func(subject string, well bool, wrong ...status.Check) {
		t.Helper()
		told, err := w.in.Mail(t.Context(), wrong, well)
		if err != nil {
			t.Fatal(err)
		}
		if told.Subject != strings.TrimSuffix("Duesday: "+subject, "Duesday: ") {
			t.Errorf("told %+v, want %s", told, subject)
		}
		if subject != "" {
			want = append(want, "Duesday: "+subject)
		}
		if got := w.subjects(); !slices.Equal(got, want) {
			t.Fatalf("told %q, want %q", got, want)
		}
	}
	tell("", false, disk) // there is no operator
	w.set("operator", "ops@example.com")
	tell("", true)
	tell("wrong: disk, mail", false, disk, mail)
	tell("", false, disk, mail)
	tell("", false) // a start, which has looked once
	tell("all checks pass again", true)
	tell("", true)
	tell("", false, disk) // it was told of today
	w.now = w.now.Add(25 * time.Hour)
	tell("wrong: disk", false, disk)
	tell("wrong: mail", false, disk, mail)
	w.now = w.now.Add(25 * time.Hour)
	tell("wrong: disk, mail", false, disk, mail)
}
