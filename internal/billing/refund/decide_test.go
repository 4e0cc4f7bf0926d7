package refund

import (
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// TestNext goes through every trigger, standing and word, by rules rather than by the table.
func TestNext(t *testing.T) {
	for _, trigger := range []trigger{byOrder, byJob} {
		for standing := absent; standing <= answered; standing++ {
			for word := unknown; word <= denied; word++ {
				want := done
				switch {
				case standing == requested && word == unknown, standing == absent && trigger == byOrder && word == unknown:
					want = look // nothing is decided without a look
				case standing == requested && word == none:
					want = send
				case standing == requested && word == invalid:
					want = refuse
				case standing == requested:
					want = leave
				case trigger == byOrder && standing == absent && word == none:
					want = create
				case trigger == byOrder && standing == absent:
					want = lost // a request was sent, so there was a record
				case trigger == byOrder && standing == refused:
					want = reject
				}
				if got := next(trigger, standing, word); got != want {
					t.Errorf("trigger %d, standing %d, word %d: step %d, want %d", trigger, standing, word, got, want)
				}
			}
		}
	}
	if len(steps) != int(byJob)+1 || len(steps[0]) != int(answered)+1 || len(steps[0][0]) != int(denied)+1 {
		t.Error("the table has other columns than the decision")
	}
}

func TestStandingOf(t *testing.T) {
	if got := standingOf(nil); got != absent {
		t.Errorf("no record: %d", got)
	}
	for state, want := range map[processor.ReversalState]standing{
		processor.ReversalRequested: requested, processor.ReversalFailed: refused, processor.ReversalInquiry: answered,
		processor.ReversalPending: answered, processor.ReversalSucceeded: answered, processor.ReversalCanceled: answered,
	} {
		if got := standingOf(&billing.ReversalRecord{State: state}); got != want {
			t.Errorf("%s: %d, want %d", state, got, want)
		}
	}
}

// TestHeard goes through every age of a look, outcome of the last request and number of
// requests.
func TestHeard(t *testing.T) {
	now := time.Date(2024, 1, 31, 9, 0, 0, 0, time.UTC)
	looks := map[string]time.Time{"never": {}, "ahead": now.Add(time.Millisecond),
		"old": now.Add(-lookAge - time.Millisecond), "fresh": now, "just": now.Add(-lookAge)}
	errs := []error{nil, processor.ErrUnknown, processor.ErrNotExecuted, processor.ErrInvalid, processor.ErrNoIntent,
		processor.ErrRefused, processor.ErrAccountRefused}
	for name, looked := range looks {
		for _, err := range errs {
			for sent := range processor.MaxSends + 2 {
				for _, stopped := range []bool{false, true} {
					want := none
					switch {
					case stopped:
						want = denied
					case name == "never" || name == "ahead" || name == "old":
						want = unknown
					case processor.Definite(err):
						want = invalid
					case sent >= processor.MaxSends:
						want = silent
					}
					task := &task{looked: looked, err: err, sent: sent, denied: stopped}
					if got := task.heard(now); got != want {
						t.Errorf("look %s, %v, %d sent, denied %t: %d, want %d", name, err, sent, stopped, got, want)
					}
				}
			}
		}
	}
}
