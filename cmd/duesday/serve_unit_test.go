package main

import (
	"io"
	"testing"

	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/tracking"
)

// TestClosedHook: whoever has set one secret is told of the endpoint that has none.
func TestClosedHook(t *testing.T) {
	contains(t, closedHook("acct_own", "http://127.0.0.1:1"+server.HookPath),
		server.ConnectPath+", for events of connected accounts, is closed", "DUESDAY_STRIPE_CONNECT_SECRETS")
	contains(t, closedHook("acct_own", "http://127.0.0.1:1"+server.ConnectPath),
		server.HookPath+", for events of acct_own itself, is closed", "DUESDAY_STRIPE_WEBHOOK_SECRETS")
}

// TestAutomations: a command takes its own action, and there is none for an empty line.
func TestAutomations(t *testing.T) {
	p := newProgram(func(string) string { return "" }, nil, io.Discard, io.Discard, nil)
	if list := p.automations(&serveFlags{}); len(list) != 0 {
		t.Errorf("%d automations of no command", len(list))
	}
	list := p.automations(&serveFlags{unsubscribe: "true"})
	if len(list) != 1 || list[0].Takes(tracking.ActionFulfil) || !list[0].Takes(tracking.ActionUnsubscribe) ||
		list[0].Name() != "command" {
		t.Errorf("%+v", list)
	}
}
