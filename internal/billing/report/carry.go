package report

import (
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// Carry returns an event's writes with its sums in one of their outbox rows, or in a row of its
// own, whose id tells the event from others. That row also names the objects that need numbers, and
// so does held mail.
func Carry(e *billing.Records, writes []store.Write, sums []Sum, objects []store.Key, id ...string) []store.Write {
	text := Text(sums)
	if text == "" {
		return writes
	}
	for i := range writes {
		w := &writes[i]
		if w.Op != store.OpPut || w.Table != e.Tables.Outbox.Name {
			continue
		}
		outbox.SetNumbered(w, objects)
		if !outbox.IsHeld(w) {
			outbox.SetSums(w, text)
			return writes
		}
	}
	now := e.Now()
	return append(writes, outbox.Write(e.Tables.Outbox.Name, outbox.Effect{ID: outbox.KindSum + "/" + strings.Join(id, "/"),
		Kind: outbox.KindSum, Due: now, Created: now, Sums: text, Numbered: objects}))
}
