package billing

import (
	"errors"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestMeta_UnreadableTimes: a text that is no time, which another tool wrote, is named. Noting the time
// again would fail for ever, since the attribute is there.
func TestMeta_UnreadableTimes(t *testing.T) {
	for _, name := range []string{schema.SumsDate, schema.CausesDate} {
		it := ItemAt(MetaKey, store.Attribute{Name: schema.Format, Value: store.Int(FormatVersion)},
			store.Attribute{Name: schema.Charging, Value: store.Bool(true)}, store.Attribute{Name: name, Value: store.S("theirs")})
		if _, err := DecodeMeta(it); !errors.Is(err, store.ErrFormat) || !strings.Contains(err.Error(), name+" is not a time") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
