package httpapi_test

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestServe_Unreadable: what net/http answers by itself is the table of the page: each of its requests gets its
// status, in plain text, on a connection that is closed then. Each status has a request here.
func TestServe_Unreadable(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "is not valid HTTP")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(table, -1) {
		listed[m[1]] = true
	}
	const host = "Host: here\r\n"
	provoked := map[string]bool{}
	for _, tt := range []struct{ text, status string }{
		{"nonsense\r\n\r\n", "400"}, {"GET /healthz\r\n\r\n", "400"}, {"G(T /healthz HTTP/1.1\r\n" + host + "\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\n" + host + "no colon\r\n\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\n" + host + "A b: c\r\n\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\n\r\n", "400"}, {"GET /healthz HTTP/1.1\r\n" + host + host + "\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", "400"},
		{"POST /healthz HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", "400"},
		{"POST /healthz HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"},
		{"\x16\x03\x01\x00\x05\r\n\r\n", "400"}, // as TLS begins
		{"GET /healthz HTTP/1.1\r\n" + host + "Expect: a miracle\r\n\r\n", "417"},
		{"GET /healthz HTTP/1.1\r\n" + host + "A: " + strings.Repeat("a", 32<<10) + "\r\n\r\n", "431"},
		{"POST /healthz HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", "501"},
		{"GET /healthz HTTP/3.7\r\n" + host + "\r\n", "505"}, {"GET /healthz HTTP/2.0\r\n" + host + "\r\n", "505"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPipes()
			stop := running(t, w, p)
			conn, err := p.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(conn, tt.text) }() // the server may read a part of it only
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%.40q: %v", tt.text, err)
			}
			body, err := io.ReadAll(r.Body) // to the end of the connection
			if err != nil || r.Status[:3] != tt.status || !r.Close || strings.HasPrefix(string(body), "{") ||
				strings.Contains(r.Header.Get("Content-Type"), "json") {
				t.Errorf("%.40q: got %s %q, closed %t, %v, want %s", tt.text, r.Status, body, r.Close, err, tt.status)
			}
			_ = conn.Close()
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		provoked[tt.status] = true
	}
	if got, want := slices.Sorted(maps.Keys(provoked)), slices.Sorted(maps.Keys(listed)); !slices.Equal(got, want) {
		t.Errorf("provoked %q, and the page lists %q", got, want)
	}
}
