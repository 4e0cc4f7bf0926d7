package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/stripefake"
)

// An attack is what a stranger without a key sends on each of many connections, which stay open.
var attacks = map[string]string{
	"no body":       "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n",
	"an open body":  "POST /hooks/stripe HTTP/1.1\r\nHost: here\r\nStripe-Signature: %s\r\nContent-Length: 1000000\r\n\r\n{",
	"chunks":        "POST /hooks/stripe HTTP/1.1\r\nHost: here\r\nStripe-Signature: %s\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
	"half a header": "POST /hooks/stripe HTTP/1.1\r\nHost: he",
	"nothing":       "",
	"keep-alive":    "GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n",
}

// TestServe_Strangers: ten times as many connections of strangers as there are places, from one
// address and from many, fail no health check, and each signed webhook meanwhile is stored. It is
// the product in a process of its own.
func TestServe_Strangers(t *testing.T) {
	const places, step = 64, 80
	c := newStripeCLI(t, stripefake.Options{})
	env := []string{"DUESDAY_STRIPE_API_BASE=" + c.env["DUESDAY_STRIPE_API_BASE"], "DUESDAY_STRIPE_KEY=" + c.env["DUESDAY_STRIPE_KEY"],
		"DUESDAY_STRIPE_WEBHOOK_SECRETS=" + hookSecret}
	dir := t.TempDir()
	serve := process(t, env, "serve", "--create", "--json", "--no-poll", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "--pages=",
		"--max-connections", fmt.Sprint(places), "--store", "pebble:"+dir+"/data", "--mail", dir, "--processor", "sandbox:"+dir+"/ledger")
	serve.Stderr = nil
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	served := decode(t, line).(map[string]any)
	base := served["base"].(string)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(r *http.Request, err error) (status int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		a, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer a.Body.Close()
		_, _ = io.Copy(io.Discard, a.Body)
		return a.StatusCode
	}
	sign := func(body string) string { return event.Sign([]byte(body), secret.New(hookSecret), time.Now()) }
	sent := 0
	for name, text := range attacks {
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, sign("another body"))
		}
		for _, many := range []bool{false, true} {
			var open []net.Conn
			for round := range 8 {
				for i := range step {
					d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
					if many {
						d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 2, byte(round), byte(i+1))}
					}
					conn, err := d.Dial("tcp", served["address"].(string))
					if err != nil {
						t.Fatal(err)
					}
					open = append(open, conn)
					_, _ = io.WriteString(conn, text) // it may have been closed for a later one
				}
				for _, path := range []string{"/healthz", "/readyz"} {
					if got := ask(http.NewRequest("GET", base+path, nil)); got != http.StatusOK {
						t.Errorf("%s, many addresses %t, round %d: %s: got %d", name, many, round, path, got)
					}
				}
				sent++
				body := fmt.Sprintf(`{"id":"evt_%d","object":"event","type":"charge.succeeded","created":%d,"livemode":false,`+
					`"api_version":"2026-08-26.dahlia","data":{"object":{"id":"ch_1","object":"charge"}}}`, sent, time.Now().Unix())
				r, err := http.NewRequest("POST", base+server.HookPath, strings.NewReader(body))
				r.Header.Set("Stripe-Signature", sign(body))
				if got := ask(r, err); got != http.StatusOK {
					t.Errorf("%s, many addresses %t, round %d: the webhook got %d", name, many, round, got)
				}
			}
			for _, conn := range open {
				conn.Close()
			}
		}
	}
	if got := ask(http.NewRequest("GET", served["api_base"].(string)+"/healthz", nil)); got != http.StatusOK {
		t.Errorf("--api: got %d", got)
	}
	if err := serve.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Error(err)
	}
	listed, err := process(t, env, "event", "list", "--json", "--limit", "1000", "--store", "pebble:"+dir+"/data").Output()
	if err != nil {
		t.Fatal(err)
	}
	if stored := decode(t, string(listed)).([]any); len(stored) != sent {
		t.Errorf("%d of %d webhooks are stored", len(stored), sent)
	}
}
