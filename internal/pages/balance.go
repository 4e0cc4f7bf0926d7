package pages

import (
	"encoding/json"
	"strconv"
)

// outcomes says for people what became of a run's periods.
var outcomes = map[string]string{"due": "all that was due", "retry": "declined, to be tried again", "failed": "failed for good",
	"pending": "waiting for the customer or the processor", "pending_customer": "of these, waiting for the customer",
	"parked": "parked, waiting for you", "asked": "asked to pay by wire", "skipped": "skipped or canceled on request",
	"unreadable": "unreadable, left out"}

// outcomeOf returns the outcome for people.
func outcomeOf(name string) string {
	if text, there := outcomes[name]; there {
		return text
	}
	return name
}

// amountsWith returns the amounts of the run's periods with the outcome, by currency, or those of all for due. It returns
// nil if an older build has kept none.
func amountsWith(run object, outcome string) any {
	unpaid, kept := run["amounts_unpaid"].(object)
	switch {
	case outcome == "paid":
		return run["amounts"]
	case outcome != "due":
		return unpaid[outcome]
	case !kept && run["due"] != run["paid"]:
		return nil
	}
	sums := map[string]int64{}
	add := func(amounts any) {
		of, _ := amounts.(object)
		for code, n := range of {
			sums[code] += minor(n)
		}
	}
	add(run["amounts"])
	for name, amounts := range unpaid {
		if name != "pending_customer" { // those are also pending
			add(amounts)
		}
	}
	all := object{}
	for code, n := range sums {
		all[code] = json.Number(strconv.FormatInt(n, 10))
	}
	return all
}
