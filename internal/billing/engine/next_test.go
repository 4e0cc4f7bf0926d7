package engine

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

var update = flag.Bool("update", false, "write golden files anew")

// actionNames are the actions as testdata/next.golden has them, in their order.
var actionNames = []string{"nothing", "report parked", "realign", "lapse", "park overload", "park altered", "park untaxed", "unpark", "open", "ask origin", "void renewed", "await origin", "park origin", "ask to pay", "reopen",
	"look up", "confirm", "cancel", "make page", "read method",
	"retry overtaken", "park mismatch", "settle", "end", "rebind", "use method", "fail", "await processor", "ask customer",
	"decline", "decline last", "decline parked", "decline use method", "decline fallback", "report awaited", "report canceling",
	"report untried", "end unpaid", "await payment", "report mismatch", "open upgrade",
	"drop upgrade"}

func (a action) String() string { return actionNames[a] }

var (
	triggers = []trigger{byRun, byPerson, byRequest, byEvent}
	statuses = []billing.Status{billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub,
		billing.Completed}
	states = []processor.State{processor.Opened, processor.Succeeded, processor.Declined, processor.RequiresAction,
		processor.Processing, processor.Canceled, "unknown"}
)

// vary calls do with every combination of the flags.
func vary(flags []*bool, do func()) {
	for bits := range 1 << len(flags) {
		for i, f := range flags {
			*f = bits&(1<<i) != 0
		}
		do()
	}
}

// eachClosed calls do with every situation with no period open.
func eachClosed(do func(situation)) {
	for _, by := range triggers {
		for _, status := range statuses {
			for o := range originGone + 1 {
				x := situation{trigger: by, status: status, origin: o}
				vary([]*bool{&x.due, &x.paidOff, &x.cancelAtEnd, &x.charged, &x.overload, &x.altered, &x.marked, &x.unfinished,
					&x.byWire, &x.untaxed, &x.taxed}, func() { do(x) })
			}
		}
	}
}

// eachByWire calls do with every situation of an open period that is paid by wire.
func eachByWire(do func(situation)) {
	for _, by := range triggers {
		for _, status := range []billing.Status{billing.Active, billing.ParkedState} {
			x := situation{trigger: by, status: status, open: true, byWire: true}
			vary([]*bool{&x.requested, &x.overdue, &x.altered}, func() { do(x) })
		}
	}
}

// eachOpen calls do with every situation with a period open.
func eachOpen(do func(situation)) {
	for _, by := range triggers {
		for _, status := range []billing.Status{billing.Active, billing.ParkedState} {
			for a := range paged + 1 {
				for _, state := range states {
					for m := range methodNew + 1 {
						x := situation{trigger: by, status: status, open: true, answer: a, state: state, method: m}
						item := []*bool{&x.requested, &x.failing, &x.retryAhead, &x.bound, &x.waiting, &x.asked, &x.overdue, &x.retryLeft}
						if a == unasked { // the intent is not known
							vary(append(item, &x.altered, &x.past), func() { do(x) })
							continue
						}
						shown := append(item, &x.matches, &x.ran, &x.attempted, &x.overtaken, &x.noPage, &x.hard)
						if state == processor.Declined && m == methodSame {
							shown = append(shown, &x.fallback)
						}
						if state == processor.RequiresAction {
							shown = append(shown, &x.late) // of a period that has one attempt
						}
						vary(shown, func() { do(x) })
						x.past, x.retryAhead, x.bound = true, false, false // it has no retry day, and this step has not bound it
						vary(append(slices.DeleteFunc(shown, func(flag *bool) bool {
							return flag == &x.retryAhead || flag == &x.bound || flag == &x.late
						}), &x.late), func() { do(x) })
					}
				}
			}
		}
	}
}

// eachUpgrade calls do with every situation of an upgrade that is marked, or open.
func eachUpgrade(do func(situation)) {
	vary := func(x situation) {
		for bits := range 4 {
			x.upgrade, x.withdrawn = true, bits&1 != 0
			x.altered = x.altered || bits&2 != 0
			do(x)
		}
	}
	eachClosed(vary)
	eachOpen(func(x situation) {
		if x.past && !x.retryLeft && x.status == billing.Active {
			vary(x)
		}
	})
}

// TestNext_Table holds the number of situations of each row, and a sum over the actions of all
// situations, against testdata/next.golden: a change of any situation's action shows there.
func TestNext_Table(t *testing.T) {
	alone(t)
	type row struct {
		open  bool
		act   action
		state processor.State // "": not known yet
	}
	counts := map[row]int{}
	eachClosed(func(x situation) { counts[row{act: next(x)}]++ })
	eachOpen(func(x situation) {
		r := row{open: true, act: next(x)}
		if x.answer != unasked {
			r.state = x.state
		}
		counts[r]++
	})
	eachByWire(func(x situation) { counts[row{true, next(x), "by wire"}]++ })
	eachUpgrade(func(x situation) {
		r := row{open: x.open, act: next(x), state: "upgrade"}
		if x.answer != unasked {
			r.state += " " + x.state
		}
		counts[r]++
	})
	var sums [paged + 4]uint64 // of every action of every situation in order: FNV-1a
	sum := func(of *uint64, a action) { *of = (*of ^ uint64(a)) * 1099511628211 }
	for i := range sums {
		sums[i] = 14695981039346656037
	}
	eachClosed(func(x situation) { sum(&sums[paged+1], next(x)) })
	eachByWire(func(x situation) { sum(&sums[paged+2], next(x)) })
	eachOpen(func(x situation) { sum(&sums[x.answer], next(x)) })
	eachUpgrade(func(x situation) { sum(&sums[paged+3], next(x)) })
	var rows []string
	for i, name := range [...]string{"unasked", "looked up", "confirmed", "canceling", "paged", "closed", "by wire", "upgrade"} {
		rows = append(rows, fmt.Sprintf("sum of %s: %016x\n", name, sums[i]))
	}
	for r, n := range counts {
		rows = append(rows, fmt.Sprintf("open=%t %s %s: %d\n", r.open, r.act, r.state, n))
	}
	slices.Sort(rows)
	got := strings.Join(rows, "")
	const file = "testdata/next.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the table has changed; go test -update writes it anew:\n%s", got)
	}
}

// TestNext_Promise holds every situation to the promise: no combination charges twice, ends a
// period that could still be paid, or moves money against a person's decision.
func TestNext_Promise(t *testing.T) {
	alone(t)
	eachClosed(func(x situation) {
		switch a := next(x); a {
		case doNothing, doReportParked, doRealign, doLapse, doParkOverload, doParkAltered:
		case doParkUntaxed:
			if !x.untaxed || x.marked || x.unfinished || !x.due || x.paidOff || x.cancelAtEnd || x.trigger.finishes() {
				t.Fatalf("parked: %+v", x)
			}
		case doAskOrigin, doVoidRenewed, doAwaitOrigin, doParkOrigin:
			if want := map[action]origin{doAskOrigin: originUnasked, doVoidRenewed: originRenewed, doAwaitOrigin: originWaits, doParkOrigin: originGone}; x.origin != want[a] ||
				x.marked || x.unfinished || !x.due || x.paidOff || x.cancelAtEnd || x.trigger.finishes() {
				t.Fatalf("%v: %+v", a, x)
			}
		case doUnpark:
			if !x.taxed || x.status != billing.ParkedState || x.marked || x.unfinished || x.trigger != byRun {
				t.Fatalf("unparked: %+v", x)
			}
		case doReopen:
			if !x.marked || x.trigger.finishes() {
				t.Fatalf("reopened: %+v", x)
			}
		case doOpen, doAskToPay:
			if x.byWire != (a == doAskToPay) {
				t.Fatalf("%v: %+v", a, x)
			}
			if x.origin != originNone && x.origin != originEnded && (x.origin != originGone || x.trigger != byPerson) {
				t.Fatalf("opened beside the processor's subscription: %+v", x)
			}
			if x.untaxed {
				t.Fatalf("opened without a tax rate: %+v", x)
			}
			if x.marked || x.unfinished {
				t.Fatalf("opened beside a past one: %+v", x)
			}
			if x.trigger == byRun && (x.overload || x.altered) || x.trigger == byPerson && x.charged {
				t.Fatalf("opened too many: %+v", x)
			}
			if x.paidOff || !x.due || x.cancelAtEnd || x.trigger.finishes() ||
				x.status != billing.Active && !(x.status == billing.ParkedState && x.trigger == byPerson) {
				t.Fatalf("opened: %+v", x)
			}
		default:
			t.Fatalf("%v with no period open: %+v", a, x)
		}
	})
	eachByWire(func(x situation) {
		decided := x.status == billing.ParkedState && x.trigger != byPerson
		switch a := next(x); {
		case (a == doEnd) != x.requested,
			a == doEndUnpaid && (!x.overdue || decided || x.requested || x.trigger != byRun),
			a == doReportParked && !decided, a == doParkAltered && (!x.altered || x.trigger != byRun):
			t.Fatalf("%v: %+v", a, x)
		case a != doEnd && a != doEndUnpaid && a != doReportParked && a != doParkAltered && a != doNothing && a != doAwaitPayment:
			t.Fatalf("%v asks the processor about a period without an intent: %+v", a, x)
		}
	})
	broken := func(x situation, a action) string {
		decided := x.status == billing.ParkedState && x.trigger != byPerson && !x.past
		switch {
		case a == doOpen || a == doRealign || a == doLapse || a == doParkOverload:
			return "an action for a closed period"
		case a == doSettle && (x.state != processor.Succeeded || !x.matches):
			return "settled without the money"
		case x.past && (a == doRebind || a == doDecline || a == doParkMismatch || a == doDeclineParked || a == doParkAltered):
			return "an action that a past period has not"
		case x.past && x.late && (a == doAskCustomer || a == doReportAwaited || a == doMakePage):
			return "a past period waits beside one that is due"
		case a == doReportMismatch && (!x.past || x.matches || x.state != processor.Succeeded):
			return "no mismatch"
		case a == doEnd && (x.state != processor.Canceled || !x.ending() && !x.past):
			return "ended while it could be paid"
		case a == doRebind && (x.state != processor.Canceled || x.ending()):
			return "a second intent beside a live one"
		case a == doCancel && !x.ending():
			return "cancelled without a reason"
		case a == doConfirm && x.answer != unasked && (x.ran || x.ending() || decided || x.trigger.finishes()):
			return "confirmed again, or against a decision"
		case a == doConfirm && x.answer == unasked && !x.bound:
			return "confirmed before a look"
		case a == doRebind && x.trigger.finishes() || a == doMakePage && (decided || x.trigger.finishes()):
			return "a request or an event moved money"
		case !x.past && x.late && (a == doAskCustomer || a == doReportAwaited || a == doMakePage):
			return "a period with one attempt waits for its customer"
		case a == doFail && x.late && x.state == processor.RequiresAction:
		case x.upgrade && x.altered && !x.ending() && x.answer != unasked && a != doSettle && a != doFail && a != doReportMismatch:
			return "an upgrade goes on although another tool may have taken the payment"
		case x.upgrade && a == doConfirm && (x.late || x.withdrawn && !x.attempted):
			return "an upgrade is charged on a later day"
		case a == doFail && x.upgrade && (x.altered || x.late || x.withdrawn && !x.attempted):
		case a == doFail && x.past && (!x.matches || x.late && x.state == processor.RequiresAction):
		case a == doFail && !(x.overdue && x.attempted) || (a == doDeclineLast) && !x.hard && x.retryLeft && !x.past:
			return "failed too early"
		case a == doDeclineLast && x.fallback, a == doDeclineFallback && (!x.fallback || x.ending() ||
			!x.past && (!x.hard && x.retryLeft || x.status == billing.ParkedState)):
			return "the fallback at a wrong time"
		case (a == doDecline || a == doDeclineLast || a == doDeclineFallback) && (x.state != processor.Declined || !x.ran):
			return "an old decline was recorded again"
		case a == doParkMismatch && x.matches, a == doRetryOvertaken && (!x.overtaken || x.answer != lookedUp || x.failing):
			return "parked or tried again without a cause"
		case (a == doUseMethod || a == doDeclineUseMethod) && x.method != methodNew:
			return "a method that is not there"
		case a == doAskCustomer && (x.asked || x.state != processor.RequiresAction) || a == doReportAwaited && !x.asked:
			return "asked twice, or never"
		case a == doMakePage && (!x.noPage || x.answer == paged || x.overdue):
			return "a page that is not needed"
		case a == doConfirm && x.answer == lookedUp && x.method != methodSame:
			return "confirmed with an old method"
		case a == doConfirm && x.answer == lookedUp && x.waiting && x.state != processor.Opened:
			return "confirmed while the customer authenticates"
		case x.answer == unasked && a == doNothing &&
			(!x.retryAhead || x.requested || x.trigger == byPerson || x.trigger == byEvent):
			return "not looked at"
		case x.answer != unasked && a == doNothing && x.state != processor.Canceled && !(x.trigger == byEvent && x.retryAhead):
			return "an answer was dropped"
		case x.state == processor.Succeeded && x.matches && x.answer != unasked && a != doSettle:
			return "money was taken and not settled"
		}
		return ""
	}
	hold := func(x situation) {
		if why := broken(x, next(x)); why != "" {
			t.Fatalf("%s: %v: %+v", why, next(x), x)
		}
	}
	eachOpen(hold)
	eachUpgrade(func(x situation) {
		switch a := next(x); {
		case x.open:
			hold(x)
		case a == doOpenUpgrade && (x.withdrawn || x.marked || x.unfinished || x.trigger.finishes()),
			a == doDropUpgrade && (!x.withdrawn || x.trigger.finishes()),
			a != doOpenUpgrade && a != doDropUpgrade && a != doLapse && a != doReopen && a != doNothing,
			a == doNothing && !x.trigger.finishes():
			t.Fatalf("%v: %+v", a, x)
		}
	})
}

// TestNext_EndsInACommit: whatever the processor answers to each request, a step asks at most
// four times and then commits, so that no subscription keeps a worker.
func TestNext_EndsInACommit(t *testing.T) {
	alone(t)
	var asks func(x situation, depth int)
	asks = func(x situation, depth int) {
		if depth > 5 {
			t.Fatalf("asks for ever: %+v", x)
		}
		switch next(x) {
		case doReadMethod:
			for _, m := range []methodCheck{methodSame, methodNew} {
				x.method = m
				asks(x, depth+1)
			}
			return
		case doLookUp:
			x.answer = lookedUp
		case doConfirm:
			x.answer = confirmed
		case doCancel:
			x.answer = canceling
		case doMakePage:
			x.answer = paged
		default:
			return
		}
		x.method = methodUnread
		for _, state := range states {
			x.state = state
			for _, ran := range []bool{false, true} {
				x.ran, x.attempted, x.matches, x.noPage = ran, ran, true, true
				asks(x, depth+1)
			}
		}
	}
	eachOpen(func(x situation) {
		if x.answer == unasked && x.method == methodUnread {
			asks(x, 0)
		}
	})
}

// alone skips a test of many cases on one goroutine if the race detector is on: it has nothing to find
// there.
func alone(t *testing.T) {
	t.Helper()
	if Raced {
		t.Skip("one goroutine: go test without -race plays it")
	}
}
