package listen_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/duesday/duesday/internal/listen"
)

// TestCaller: the nearest address that no proxy of ours has; what others write counts nowhere.
func TestCaller(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct {
		at   string
		told []string
		want string
	}{
		{"192.0.2.1:99", []string{"203.0.113.9"}, "192.0.2.1:99"}, // no proxy of ours
		{"10.1.2.3:99", nil, "10.1.2.3:99"},
		{"10.1.2.3:99", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[::ffff:10.1.2.3]:99", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[fd00::1]:99", []string{"2001:db8::5"}, "2001:db8::5"},
		{"10.1.2.3:99", []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9"}, // the caller's own words
		{"10.1.2.3:99", []string{"6.6.6.6", "203.0.113.9, 10.9.9.9"}, "203.0.113.9"},
		{"10.1.2.3:99", []string{"203.0.113.9:4711"}, "203.0.113.9:4711"},
		{"10.1.2.3:99", []string{"[2001:db8::5]"}, "[2001:db8::5]"},
		{"10.1.2.3:99", []string{"10.9.9.9"}, "10.9.9.9"},
		{"10.1.2.3:99", []string{"203.0.113.9, a\nline"}, "10.1.2.3:99"},
		{"10.1.2.3:99", []string{""}, "10.1.2.3:99"},
		{"pipe", []string{"203.0.113.9"}, "pipe"},
	} {
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = tt.at, tt.told
		r.Header.Set("Forwarded", "for=198.51.100.1")
		if got := listen.Caller(r, proxies); got != tt.want {
			t.Errorf("%s, %q: got %s, want %s", tt.at, tt.told, got, tt.want)
		}
	}
}
