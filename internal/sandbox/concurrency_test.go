package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

func TestConcurrent_OneRef(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *clock) {
		ref := mustOpen(t, s, request(t, 1, 0, "pm_card_visa")).Ref
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				method := "pm_card_visa"
				if i%2 == 0 {
					method = "pm_card_visa_chargeDeclined"
				}
				r := billing.ConfirmRequest{Key: fmt.Sprint("key", i), Ref: ref, Method: method, Attempt: i}
				if _, err := s.Confirm(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := strings.Count(outcomes(s), "succeeded"); got != 1 {
			t.Errorf("%d succeeded lines, want 1", got)
		}
	})
}

func TestConcurrent_OneKey(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *clock) {
		r := request(t, 1, 0, "pm_card_visa")
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				in, err := s.Open(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				if _, err := s.Confirm(t.Context(), billing.ConfirmRequest{Key: "k", Ref: in.Ref,
					Method: "pm_card_visa_chargeDeclined"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantOutcomes(t, s, "opened declined")
	})
}

// Everything at once, for the race detector; what was answered is listed at once.
func TestConcurrent_Everything(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *clock) {
		rounds := 20
		if _, remote := s.Processor.(*Client); remote {
			rounds = 2 // each of them reads the whole ledger over the wire
		}
		var wg sync.WaitGroup
		for worker := range 16 {
			wg.Go(func() {
				for i := range rounds {
					in := pay(t, s, worker*100+i)
					found := false
					for listed, err := range s.List(t.Context(), billing.ListRequest{}) {
						if err != nil {
							t.Error(err)
						}
						found = found || listed.Ref == in.Ref
					}
					if !found {
						t.Errorf("%s was answered but not listed", in.Ref)
					}
					doomed := mustOpen(t, s, request(t, worker*100+i, 1, fmt.Sprint("pm_", worker, i))).Ref
					if _, err := s.Cancel(t.Context(), doomed); err != nil {
						t.Error(err)
					}
					outcomes(s)
				}
			})
		}
		wg.Wait()
		if got := strings.Count(outcomes(s), "succeeded"); got != 16*rounds {
			t.Errorf("%d succeeded lines, want %d", got, 16*rounds)
		}
	})
}

// A slowFile says how often it was synced, and fails when told to.
type slowFile struct {
	mu     sync.Mutex
	syncs  int
	text   strings.Builder
	synced string
	gate   chan struct{} // a sync waits for it
	fail   error
}

func (f *slowFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(p)
}

func (f *slowFile) Sync() error {
	<-f.gate
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	if f.fail == nil {
		f.synced = f.text.String()
	}
	return f.fail
}

func (f *slowFile) Close() error { return nil }

func (f *slowFile) onDisk(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(f.synced, `"key":"`+key+`"`)
}

// withFile is a sandbox that writes to f.
func withFile(t *testing.T, f *slowFile) *Sandbox {
	t.Helper()
	s := openSandbox(t, "", Options{})
	s.out = newWriter(f, 0)
	return s
}

// While the first sync lasts, the other callers' lines gather, and one more sync has them all.
func TestWriter_SharesSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowFile{gate: make(chan struct{})}
		s := withFile(t, f)
		var wg sync.WaitGroup
		for i := range 128 {
			wg.Go(func() {
				r := request(t, i, 0, "")
				mustOpen(t, s, r)
				if !f.onDisk(r.Key) {
					t.Errorf("%s was answered before it was on disk", r.Key)
				}
			})
		}
		synctest.Wait() // until every caller waits for the disk
		close(f.gate)
		wg.Wait()
		if f.syncs > 2 {
			t.Errorf("%d syncs for 128 answers", f.syncs)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// No answer shows a state that a power cut could take back.
func TestWriter_NothingShownBeforeDisk(t *testing.T) {
	f := &slowFile{gate: make(chan struct{})}
	s := withFile(t, f)
	var wg sync.WaitGroup
	wg.Go(func() { f.gate <- struct{}{} })
	ref := mustOpen(t, s, request(t, 1, 0, "")).Ref
	wg.Wait()
	r := billing.ConfirmRequest{Key: "k", Ref: ref, Method: "pm_card_visa"}
	shown := func(in billing.Intent, err error) {
		if err != nil || in.State != billing.Succeeded || !f.onDisk("k") {
			t.Errorf("%+v, %v, on disk: %v", in, err, f.onDisk("k"))
		}
	}
	s.mu.Lock() // so that all of them come after the confirm has been executed
	number := s.attempt(*s.ledger.lines.at(0), 1, r, time.Now().UnixMilli())
	s.mu.Unlock()
	if got := outcomes(s); got != "opened" {
		t.Errorf("entries before the sync: %s", got)
	}
	wg.Go(func() { shown(s.Confirm(t.Context(), r)) })
	wg.Go(func() { shown(s.Lookup(t.Context(), ref)) })
	wg.Go(func() { shown(s.Cancel(t.Context(), ref)) })
	wg.Go(func() {
		for in, err := range s.List(t.Context(), billing.ListRequest{}) {
			shown(in, err)
		}
	})
	wg.Go(func() { close(f.gate) })
	wg.Wait()
	if err := s.out.wait(number + 1); err != nil {
		t.Error(err)
	}
}

func TestWriter_FailedSync(t *testing.T) {
	f := &slowFile{gate: make(chan struct{})}
	close(f.gate)
	s := withFile(t, f)
	ref := mustOpen(t, s, request(t, 1, 0, "")).Ref
	f.mu.Lock()
	f.fail = errors.New("disk is gone")
	f.mu.Unlock()
	for i := range 3 {
		r := billing.ConfirmRequest{Key: fmt.Sprint(i), Ref: ref, Method: "pm_card_visa"}
		if in, err := s.Confirm(t.Context(), r); !errors.Is(err, billing.ErrUnknown) || !errors.Is(err, f.fail) ||
			in != (billing.Intent{}) {
			t.Errorf("confirm: %+v, %v", in, err)
		}
	}
	if _, err := s.Lookup(t.Context(), ref); !errors.Is(err, billing.ErrUnknown) {
		t.Errorf("lookup of what may not be on disk: %v", err)
	}
	wantOutcomes(t, s, "opened")
	if err := s.Close(); !errors.Is(err, f.fail) {
		t.Errorf("close: %v", err)
	}
}
