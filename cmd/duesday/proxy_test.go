package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/stripe/event"
)

// TestProxy runs the configurations of docs/proxy.md, with other ports and a certificate of the
// test, in front of serve.
func TestProxy(t *testing.T) {
	page, err := os.ReadFile("../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		deb  string
		args func(config string) []string
		wrap func(config, dir, at, cert, key string) string
	}{
		"nginx": {"nginx-light", func(config string) []string { return []string{"-c", config, "-e", config + ".log"} },
			func(config, dir, at, cert, key string) string {
				config = strings.NewReplacer("listen 443 ssl", "listen "+at+" ssl", "/etc/ssl/pay.example.pem", cert,
					"/etc/ssl/pay.example.key", key).Replace(config)
				paths, user := "", ""
				for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
					paths += fmt.Sprintf("%s_temp_path %s/%[1]s;\n", kind, dir)
				}
				if os.Getuid() == 0 { // its workers write to the test's folder
					user = "user root; "
				}
				return user + "daemon off; pid " + dir + "/pid;\nevents {}\nhttp { access_log off;\n" + paths + config + "}\n"
			}},
		"caddy": {"caddy", func(config string) []string { return []string{"run", "--adapter", "caddyfile", "--config", config} },
			func(config, dir, at, cert, key string) string {
				return "{\nadmin off\nauto_https disable_redirects\nskip_install_trust\nstorage file_system " + dir + "\n}\n" +
					strings.Replace(config, "pay.example {", "https://"+at+" {\ntls "+cert+" "+key, 1)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed, and its part of docs/proxy.md is not tested: apt-get install %s", name, tt.deb)
			}
			_, config, _ := strings.Cut(string(page), "```"+name+"\n")
			config, _, _ = strings.Cut(config, "```")
			if !strings.Contains(config, "127.0.0.1:8080") {
				t.Fatalf("the page has no configuration of %s", name)
			}
			c := newServeCLI(t)
			v, stop := c.serve("--no-poll", "--trusted-proxy", "127.0.0.1")
			dir := t.TempDir()
			cert, key := newCertificate(t, dir)
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			at := free.Addr().String()
			free.Close()
			file := filepath.Join(dir, "config")
			config = tt.wrap(strings.ReplaceAll(config, "127.0.0.1:8080", v.Address), dir, at, cert, key)
			if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			proxy := exec.Command(path, tt.args(file)...)
			proxy.Env = append(os.Environ(), "HOME="+dir)
			var says strings.Builder
			proxy.Stdout, proxy.Stderr = &says, &says
			if err := proxy.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = proxy.Wait() }()
			defer func() { _ = proxy.Process.Signal(os.Interrupt) }()
			c.until("the proxy answers", func() bool {
				conn, err := net.Dial("tcp", at)
				if err == nil {
					conn.Close()
				}
				return err == nil
			})
			behind(t, c, "https://"+at)
			if r := stop(); !strings.Contains(r.errors, "remote=127.0.0.9") || strings.Contains(r.errors, "6.6.6.6") {
				t.Errorf("the log does not name the caller: %s", r.errors)
			}
			if t.Failed() {
				t.Log(says.String())
			}
		})
	}
}

// behind asks through the proxy, from 127.0.0.9, which claims to be 6.6.6.6.
func behind(t *testing.T, c *serveCLI, base string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	insecure := &tls.Config{InsecureSkipVerify: true}
	client := &http.Client{Timeout: 20 * time.Second,
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: insecure}}
	post := func(path, body, sign string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-For", "6.6.6.6")
		r.Header.Set("Stripe-Signature", event.Sign([]byte(body), secret.New(sign), c.clock.Now()))
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		_, _ = io.Copy(io.Discard, a.Body)
		return a.StatusCode
	}
	for range 20 { // of a slow caller
		conn, err := (&tls.Dialer{NetDialer: &dialer, Config: insecure}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /hooks/stripe HTTP/1.1\r\nHost: 127.0.0.1\r\nStripe-Signature: %s\r\nContent-Length: 99\r\n\r\n{",
			event.Sign([]byte("{"), secret.New(hookSecret), c.clock.Now()))
	}
	body := fmt.Sprintf(`{"id":"evt_1","object":"event","type":"charge.succeeded","created":%d,"livemode":false,`+
		`"api_version":"2026-08-26.dahlia","data":{"object":{"id":"ch_1","object":"charge"}}}`, c.clock.Now().Unix())
	const nearlyMiB = 1_048_000
	large := strings.Replace(body, "ch_1", strings.Repeat("c", nearlyMiB), 1)
	if got := post(server.HookPath, strings.Repeat("a", 2<<20), hookSecret); got != 413 && got != 502 { // 502: Caddy, at times
		t.Errorf("too large: got %d", got)
	}
	equal(t, "signed, large, wrong, the API", []int{post(server.HookPath, body, hookSecret),
		post(server.HookPath, strings.Replace(large, "evt_1", "evt_2", 1), hookSecret), post(server.HookPath, body, "whsec_wrong"),
		post("/v1/purchases", "{}", hookSecret),
		post("/metrics", "", hookSecret)}, []int{200, 200, 400, 404, 404})
}

// newCertificate writes a certificate of 127.0.0.1 and its key to files.
func newCertificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	text, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secretText, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: text}, key: {Type: "PRIVATE KEY", Bytes: secretText}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
