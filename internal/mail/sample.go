package mail

import (
	_ "embed"
	"encoding/json"
	"maps"
	"time"

	"github.com/duesday/duesday/internal/outbox"
)

// sampleData is the data of every kind (""), and of each.
//
//go:embed sample.json
var sampleData []byte

// Sample returns an effect of the kind with all data that the kind can have, for previews and
// tests.
func Sample(kind, locale, email string, at time.Time) outbox.Effect {
	var of map[string]map[string]string
	_ = json.Unmarshal(sampleData, &of) // a test reads it
	data := of[""]
	maps.Copy(data, of[kind])
	data[outbox.DataEmail], data[outbox.DataLocale] = email, locale
	return outbox.Effect{ID: "sample/" + kind + "/" + at.Format(time.RFC3339Nano), Kind: kind, Due: at, Created: at,
		Data: data}
}

// samples are effects that go every way through the templates of a kind.
func samples(kind, language string) (list []outbox.Effect) {
	for _, more := range []map[string]string{{}, {outbox.DataLink: ""}, {outbox.DataNoMethod: "true"},
		{outbox.DataCardExpired: "true"}, {outbox.DataTrial: "true"}, {outbox.DataNoMethod: "true", outbox.DataLink: ""},
		{outbox.DataCardExpired: "true", outbox.DataLink: ""}, {outbox.DataCode: "insufficient_funds"},
		{outbox.DataCode: "expired_card"}, {outbox.DataCode: "authentication_required"},
		{outbox.DataCode: "processing_error"}, {outbox.DataDueDate: "", outbox.DataRetryDate: ""}, {outbox.DataCollect: "2026-07-28"},
		{outbox.DataPayBy: "2026-07-12"}, {outbox.DataDocument: "https://pay.example.com/r/x"}, {outbox.DataPage: "https://pay.example.com/l/x"},
		{outbox.DataFallback: "true", outbox.DataCard: "Visa ending in 4242"}} {
		e := Sample(kind, language, "ada@example.com", time.Unix(0, 0))
		maps.Copy(e.Data, more)
		list = append(list, e)
	}
	return list
}
