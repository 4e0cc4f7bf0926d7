package delivery

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestIsPublic: no form of a private, local or special address is public.
func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.15.255.255": true, "172.32.0.1": true, "192.167.1.1": true, "100.63.0.1": true,
		"100.128.0.1": true, "2606:4700:4700::1111": true, "2a00:1450::1": true, "64:ff9b::808:808": true, "2002:808:808::1": true,
		"::ffff:8.8.8.8": true,
		"127.0.0.1":      false, "127.255.255.254": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.168.0.1": false, "169.254.169.254": false, "169.254.170.2": false, "100.64.0.1": false,
		"100.100.100.200": false, "192.0.0.192": false, "192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false, "203.0.113.1": false,
		"224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"fec0::1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, "2002:7f00:1::1": false, "2002:a00:1::1": false,
		"2001::1": false, "2001:db8::1": false, "100::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// TestDial: a private address is refused after the name was resolved, whatever form the URL has, and
// reached with allowPrivate.
func TestDial(t *testing.T) {
	r := newReceiver(t, nil)
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1"} {
		for _, allow := range []bool{false, true} {
			_, err := newClient(allow, nil).Get("http://" + host + ":" + port)
			if !allow && !errors.Is(err, ErrPrivate) && host != "127.1" { // which only some resolvers know
				t.Errorf("%s: %v", host, err)
			}
			if allow && host == "127.0.0.1" && err != nil {
				t.Error(err)
			}
		}
	}
	if n := len(r.requests()); n > 5 {
		t.Error(n, "requests")
	}
}

// TestDial_Rebinding: a name that had a public address when it was looked up, and has a private one at the
// next look-up, reaches nothing.
func TestDial_Rebinding(t *testing.T) {
	r := newReceiver(t, nil)
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	dns := rebinding(t)
	c := newClient(false, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns)
	}})
	for range 3 {
		_, err := c.Get("http://rebinding.example:" + port)
		if !errors.Is(err, ErrPrivate) {
			t.Error(err)
		}
	}
	if n := len(r.requests()); n != 0 {
		t.Error(n)
	}
}

// rebinding serves DNS: each question for an address has the answer 127.0.0.1.
func rebinding(t *testing.T) (address string) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for b := make([]byte, 512); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			end := 12 // of the question, behind the header
			for end < n && b[end] != 0 {
				end += int(b[end]) + 1
			}
			question := b[12 : end+5]
			answer := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			if question[len(question)-3] == 1 { // an A record
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	return conn.LocalAddr().String()
}

// TestRedirect: a redirect is a failure, and not followed.
func TestRedirect(t *testing.T) {
	w := newWorld(t)
	private := newReceiver(t, nil)
	r := newReceiver(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Location", private.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	w.create(r.URL)
	w.cause("a", "period.paid")
	w.drain(w.sender())
	if m := w.messages(Filter{})[0]; len(private.requests()) != 0 || m.State != Waiting || m.Attempts[0].Code != "http_307" {
		t.Errorf("%+v", m)
	}
}

// TestAnswer: an endless answer is read to a limit, and no part of it is stored.
func TestAnswer(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ int) {
		for range 10000 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	w.create(r.URL)
	w.cause("a", "period.paid")
	began := time.Now()
	w.drain(w.sender())
	if w.states()[Delivered] != 1 || time.Since(began) > attemptLimit {
		t.Error(w.states())
	}
}

// TestProxy: proxies of the environment are not used.
func TestProxy(t *testing.T) {
	proxy := newReceiver(t, nil)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	if _, err := newClient(false, nil).Get("http://10.0.0.1:1"); !errors.Is(err, ErrPrivate) || len(proxy.requests()) != 0 {
		t.Error(err)
	}
}

// TestClient_ClosesAHandshake: a receiver that never answers the TLS handshake does not keep the connection of
// each attempt open.
func TestClient_ClosesAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		client := newClient(true, nil)
		client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return here, nil }
		ctx, cancel := context.WithTimeout(t.Context(), attemptLimit)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://receiver.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = client.Do(r) }()
		began := time.Now()
		_ = there.SetReadDeadline(began.Add(time.Hour))
		if _, err := io.Copy(io.Discard, there); err != nil || time.Since(began) > 2*attemptLimit {
			t.Error("the connection is open after", time.Since(began), err)
		}
	})
}
