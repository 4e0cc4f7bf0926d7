package view

import (
	"encoding/json"
	"strconv"

	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
)

// Mail returns a mail without its text.
func Mail(m *maillog.Mail) Object {
	var period any
	if n, err := strconv.Atoi(m.Data[outbox.DataPeriod]); err == nil {
		period = json.Number(strconv.Itoa(n)) // period 0 too
	}
	return Object{"id", m.MailID, "kind", m.Kind, "state", m.State, "email?", m.Data[outbox.DataEmail], "account?", m.Data[outbox.DataAccount],
		"subscription?", m.Data[outbox.DataSubscription], "period?", period, "created_at", m.Created, "due_at?", m.Due, "ended_at?", m.Ended,
		"attempts", m.Tries, "answer?", m.Answer, "effect", m.ID}
}
