package main

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServe_Systemd: serve tells systemd that it is ready once it answers requests, then feeds the watchdog while clients
// hold all the connections that they can get, and tells of its stop.
func TestServe_Systemd(t *testing.T) {
	c := newCLI(t)
	at := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	told := func() string {
		b := make([]byte, 4096)
		if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	c.env["NOTIFY_SOCKET"], c.env["WATCHDOG_USEC"] = at, "30000"
	v, stop := c.serveBy(time.Now, "--max-connections", "4", "--customer", "127.0.0.1:0", "--pages", "127.0.0.1:0")
	contains(t, told(), "READY=1\nSTATUS=serving pebble:")
	r, err := http.Get(v.Base + "/healthz")
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("ready, but /healthz gives %v, %v", r, err)
	}
	r.Body.Close()
	for range 20 {
		silent, err := net.Dial("tcp", v.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		equal(t, "fed", told(), "WATCHDOG=1")
	}
	done := make(chan result, 1)
	go func() { done <- stop() }()
	for last := ""; !strings.HasPrefix(last, "STOPPING=1"); {
		last = told()
	}
	equal(t, "exit", (<-done).code, exitDone)
}
