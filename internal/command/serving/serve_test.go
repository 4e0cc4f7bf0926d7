package serving

import (
	"io"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/tracking"
)

// TestClosedHook checks that, if only one endpoint has secrets, the message names the other
// endpoint and its variable.
func TestClosedHook(t *testing.T) {
	for open, want := range map[string][]string{
		server.HookPath:    {server.ConnectPath + ", for events of connected accounts, is closed", "DUESDAY_STRIPE_CONNECT_SECRETS"},
		server.ConnectPath: {server.HookPath + ", for events of acct_own itself, is closed", "DUESDAY_STRIPE_WEBHOOK_SECRETS"},
	} {
		got := closedHook("acct_own", "http://127.0.0.1:1"+open)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q does not contain %q", open, got, text)
			}
		}
	}
}

// TestAutomations checks that a command only handles its own action, and that an empty flag adds no
// command.
func TestAutomations(t *testing.T) {
	p := &program{session.New(func(string) string { return "" }, nil, io.Discard, io.Discard, nil)}
	if list := p.automations(&serveFlags{}); len(list) != 0 {
		t.Errorf("%d automations of no command", len(list))
	}
	list := p.automations(&serveFlags{unsubscribe: "true"})
	if len(list) != 1 || list[0].Takes(tracking.ActionFulfil) || !list[0].Takes(tracking.ActionUnsubscribe) ||
		list[0].Name() != "command" {
		t.Errorf("%+v", list)
	}
}
