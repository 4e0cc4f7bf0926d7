package sandbox

import (
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

// answer is change with the intent of the line that the step returns.
func (s *Sandbox) answer(step func(now int64) (uint32, error)) (processor.Intent, error) {
	return change(s, func(now time.Time) (in processor.Intent, err error) {
		number, err := step(now.UnixMilli())
		if err == nil {
			in = s.ledger.intent(number)
		}
		return in, err
	})
}

// change is locked with the clock's time, in the precision of the ledger.
func change[T any](s *Sandbox, step func(now time.Time) (T, error)) (v T, err error) {
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	if y := now.Year(); y < 0 || y > 9999 {
		return v, fmt.Errorf("sandbox processor: its clock is in the year %d, which RFC 3339 cannot represent", y)
	}
	return locked(s, func() (T, error) { return step(now) })
}

// locked runs the step under the lock, and returns when every line until then is on disk.
func locked[T any](s *Sandbox, step func() (T, error)) (T, error) {
	var none, v T
	work := func() (err error) {
		v, err = step()
		return err
	}
	do := s.inMemory
	if s.out != nil {
		do = s.out.do
	}
	if err := do(work); err != nil {
		return none, err
	}
	return v, nil
}

func (s *Sandbox) inMemory(work func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return work()
}

// write appends the line, in memory and for the file. mu is held.
func (s *Sandbox) write(n line, key string) uint32 {
	number := s.ledger.add(n, key)
	if s.out != nil {
		line := recordOf(s.ledger.entry(number))
		line.Key = key // it is not kept in memory
		s.out.pending = append(s.out.pending, line)
	}
	return number
}

// saved returns the line of the key's answer, if it is remembered. same reports whether the line answers the
// same request. mu is held.
func (s *Sandbox) saved(key string, now int64, same func(*line) bool) (number uint32, ok bool, err error) {
	h := hashKey(key)
	if at, spoilt := s.spoilt[h]; spoilt {
		if s.alive(at, now) {
			return 0, false, fmt.Errorf("%w: this key has a stored failure", processor.ErrUnknown)
		}
		delete(s.spoilt, h)
	}
	if _, ok := s.reversalOf(h, now); ok {
		return 0, false, errOtherUse
	}
	number, ok = s.ledger.keys[h]
	if ok = ok && s.alive(s.ledger.lines.at(number).at, now); ok && !same(s.ledger.lines.at(number)) {
		return 0, false, invalid("the idempotency key was used with other parameters")
	}
	return number, ok, nil
}

// find must be called with mu held.
func (s *Sandbox) find(ref string) (*intent, error) {
	i, ok := s.ledger.refs[ref]
	if !ok {
		return nil, fmt.Errorf("%w: %.64q", processor.ErrNoIntent, ref)
	}
	return s.ledger.intents.at(i), nil
}

func (s *Sandbox) open(r processor.OpenRequest) (processor.Intent, error) {
	if err := checkOpen(r); err != nil {
		return processor.Intent{}, err
	}
	return s.answer(func(now int64) (uint32, error) {
		l := s.ledger
		number, ok, err := s.saved(r.Key, now, func(n *line) bool {
			t := l.terms.at(n.terms)
			return n.state == opened && l.tag(t) == r.Tag && t.amount() == r.Amount && l.name(t.price) == r.Price && l.name(n.method) == r.Method
		})
		if ok || err != nil {
			return number, err
		}
		n := line{at: now, terms: l.addTerms(r.Tag, r.Amount, r.Price), intent: l.addIntent(s.nextRef(refPrefix)),
			method: l.intern(r.Method)}
		return s.write(n, r.Key), nil
	})
}

func (s *Sandbox) confirm(r processor.ConfirmRequest) (processor.Intent, error) {
	if err := checkConfirm(r); err != nil {
		return processor.Intent{}, err
	}
	attempted := false
	in, err := s.answer(func(now int64) (uint32, error) {
		l := s.ledger
		number, ok, err := s.saved(r.Key, now, func(n *line) bool {
			return n.state != opened && l.intents.at(n.intent).ref == r.Ref && l.name(n.method) == r.Method
		})
		if ok || err != nil {
			return number, err
		}
		in, err := s.find(r.Ref)
		if err != nil {
			return 0, err
		}
		last := *l.lines.at(in.last)
		if last.state == succeeded || last.state == canceled || last.state == processing {
			return in.last, nil
		}
		attempted = true
		return s.attempt(last, in.charges+1, r, now), nil
	})
	if err == nil && attempted && r.Method == methodTimeout {
		return processor.Intent{}, fmt.Errorf("%w: %s", processor.ErrUnknown, methodTimeout)
	}
	return in, err
}

// attempt tries to take the money. An unknown token is no payment method: a hard decline. mu is held.
func (s *Sandbox) attempt(last line, charge uint32, r processor.ConfirmRequest, now int64) uint32 {
	l := s.ledger
	o, known := byMethods[r.Method]
	switch {
	case !known:
		o = noMethod
	case r.Method == methodFlaky && !l.flaky[l.flakyKey(last.terms)]:
		o = generic
	}
	last.at, last.attempt, last.charge, last.hard = now, int32(r.Attempt), charge, o.hard
	last.method, last.code = l.intern(r.Method), l.intern(o.code)
	last.state, _ = stateOf(o.state)
	return s.write(last, r.Key)
}

func (s *Sandbox) cancel(ref string) (processor.Intent, error) {
	return s.answer(func(now int64) (uint32, error) {
		in, err := s.find(ref)
		if err != nil {
			return 0, err
		}
		last := *s.ledger.lines.at(in.last)
		if last.state == succeeded || last.state == canceled {
			return in.last, nil
		}
		last.at, last.state = now, canceled
		return s.write(last, ""), nil
	})
}

// Authenticate makes an intent in the state RequiresAction succeed. It returns ErrInvalid for any
// other state.
func (s *Sandbox) Authenticate(ref string) error { return s.decide(ref, requiresAction, paid) }

// Finish decides an intent in the state Processing, as the bank would. It returns ErrInvalid for
// any other state.
func (s *Sandbox) Finish(ref string, ok bool) error {
	if ok {
		return s.decide(ref, processing, paid)
	}
	return s.decide(ref, processing, generic)
}

// decide ends the attempt under way. It is no client's call: no faults, no latency.
func (s *Sandbox) decide(ref string, want state, o outcome) error {
	_, err := s.answer(func(now int64) (uint32, error) {
		in, err := s.find(ref)
		if err != nil {
			return 0, err
		}
		last := *s.ledger.lines.at(in.last)
		if last.state != want {
			return 0, invalid(fmt.Sprintf("the intent is %s, not %s", states[last.state], states[want]))
		}
		last.at, last.code, last.hard = now, s.ledger.intern(o.code), o.hard
		last.state, _ = stateOf(o.state)
		return s.write(last, ""), nil
	})
	return err
}
