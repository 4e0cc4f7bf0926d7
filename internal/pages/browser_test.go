package pages_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
	"github.com/duesday/duesday/internal/test/browsertest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestBrowser_Refresh: in Chromium, with script and without, the page of a run under way loads itself again as the page,
// not as the person, so that it does not prolong the session.
func TestBrowser_Refresh(t *testing.T) {
	soaktest.Long(t)
	for _, noScript := range []bool{false, true} {
		var persons []bool
		h := pages.New(pages.Options{API: api(nil), Keys: keys{scope: key.Read, asked: &persons}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		site := httptest.NewServer(h)
		defer site.Close()
		b := browsertest.New(t, site.URL, noScript)
		b.Visit("/sign-in")
		b.Type("#key", aKey)
		b.Enter()
		persons = nil
		b.Visit("/runs/r")
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(time.Minute); !strings.HasSuffix(b.Path(), "?refresh=1"); <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("no script: %t: the page does not load itself again: %s", noScript, b.Path())
			}
		}
		if wrong := b.Troubles(); len(wrong) > 0 || b.Text("h1") != "Run" {
			t.Errorf("no script: %t: %q %s", noScript, wrong, b.Text("h1"))
		}
		site.Close() // no request is under way
		if len(persons) < 2 || !persons[0] || persons[1] {
			t.Errorf("no script: %t: a person, and then the page: %v", noScript, persons)
		}
	}
}
