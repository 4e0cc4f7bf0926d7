package view

import "github.com/duesday/duesday/internal/delivery"

// Endpoint returns an endpoint without its secrets. After an examination, it has the endpoint's health.
func Endpoint(e *delivery.Endpoint) Object {
	o := Object{"id", e.ID, "url", e.URL, "types?", append([]string(nil), e.Types...), "created_at", e.Created, "failing_since?", e.Failing,
		"paused_at?", e.Paused, "reason?", e.Reason, "gave_up_at?", e.GaveUp, "previous_secret_until?", e.Until, "version", e.Version}
	if h := e.Health; h != nil {
		o = append(o, "delivered_at?", h.Delivered, "failed_at?", h.Failed, "waiting", h.Waiting, "dead", h.Dead)
	}
	return o
}

// Message returns a message with its attempts.
func Message(m *delivery.Message) Object {
	return Object{"id", m.ID, "endpoint", m.Endpoint, "type", m.Type, "created_at", m.Created, "state", m.State, "next_at?", m.Due,
		"ended_at?", m.Ended, "data", m.Data, "attempts", List(m.Attempts, func(a delivery.Attempt) Object {
			return Object{"at", a.At, "status?", a.Status, "duration_ms", a.Millis, "code?", a.Code}
		})}
}
