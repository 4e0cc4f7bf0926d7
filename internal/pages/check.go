package pages

import (
	"regexp"
	"strings"
)

// command finds the commands in a check's next step: "run: " introduces each, and a comma or semicolon ends it. A quoted
// word may contain both.
var command = regexp.MustCompile(`\brun: ((?:'[^']*'|[,;]\S|[^,;'])+)`)

// checkPages are the pages that help with a check that found such a text; the first match counts.
var checkPages = []struct{ check, found, path, label string }{
	{"charging", "", "/installation/charging-on", "Turn charging on"},
	{"days", "", "/runs/payments", "Run the payments"},
	{"due", "", "/runs/payments", "Run the payments"},
	{"payments", "succeeded", "/runs?kind=payments", "Payment runs"},
	{"payments", "refused since", "/runs?kind=payments", "Payment runs"},
	{"payments", "", "/runs/payments", "Run the payments"},
	{"reminders", "refused since", "/runs?kind=reminders", "Reminder runs"},
	{"reminders", "", "/runs/reminders", "Run the reminders"},
	{"waiting", "parked", "/subscriptions?status=parked", "Parked subscriptions"},
	{"mail", "given up", "/mails?state=given_up", "Mails given up"},
	{"mail", "is held", "/mails?state=held", "Held mails"},
	{"mail", "has waited", "/mails?state=waiting", "Waiting mails"},
	{"events", "given up", "/events?status=dead", "Events given up"},
	{"events", "", "/events?status=waiting", "Waiting events"},
	{"endpoints", "", "/endpoints", "Endpoints"},
	{"deliveries", "given up", "/deliveries?state=failed", "Failed deliveries"},
	{"deliveries", "", "/deliveries?state=waiting", "Waiting deliveries"},
	{"accounts", "", "/merchants", "Merchants"},
	{"webhooks", "poller found", "/events?source=poll", "Events that the poller found"},
}

// pageOf returns the path and label of the page that helps with the check, or nil.
func pageOf(check object) object {
	found, _ := check["found"].(string)
	for _, p := range checkPages {
		if p.check == check["check"] && strings.Contains(found, p.found) {
			return object{"path": p.path, "label": p.label}
		}
	}
	return nil
}

// nextOf returns the parts of a check's next step. Commands are for copying, and the rest is text.
func nextOf(next any) (parts []object) {
	text, _ := next.(string)
	done := 0
	for _, at := range command.FindAllStringSubmatchIndex(text, -1) {
		parts = append(parts, object{"text": text[done:at[2]]}, object{"command": text[at[2]:at[3]]})
		done = at[3]
	}
	return append(parts, object{"text": text[done:]})
}
