package outbox

import "time"

// schedule is the one of Standard Webhooks 1.0: schedule[n] is the wait before the next
// delivery after n failed ones. The tenth failure, a bit over three days after the first
// delivery, is the last.
func schedule() [10]time.Duration {
	return [10]time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
		5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// nextDue returns when an effect with so many failed deliveries is due again, or false after
// the last one. The wait counts from now, not from the last due time: an outbox that nobody
// drained for days must not use up its tries in a minute.
func nextDue(tries int, now time.Time) (time.Time, bool) {
	waits := schedule()
	if tries < 0 || tries >= len(waits) {
		return time.Time{}, false
	}
	return now.Add(waits[tries]).UTC().Truncate(time.Millisecond), true
}
