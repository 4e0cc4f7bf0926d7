package delivery

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	attemptLimit = 15 * time.Second // for one request and its response
	answerBytes  = 64 << 10         // of a response that are read
	mostWait     = time.Hour        // maximum Retry-After
)

// ErrPrivate is returned for an address that is not public.
var ErrPrivate = errors.New("the address is private to this host or its network; a receiver there needs duesday serve --allow-private")

const codePrivate = "private_address"

// notPublic contains the non-public address ranges that netip does not know: shared, documentation, benchmark,
// multicast and reserved addresses, protocol assignments, and private or local IPv6 addresses.
var notPublic = func() (list []netip.Prefix) {
	for _, text := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
		"2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10"} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}()

// isPublic reports whether the address is public. For an IPv6 address that embeds an IPv4 address, it checks
// the IPv4 address.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if b := ip.As16(); ip.Is6() {
		switch {
		case netip.MustParsePrefix("64:ff9b::/96").Contains(ip): // NAT64
			return isPublic(netip.AddrFrom4([4]byte(b[12:])))
		case netip.MustParsePrefix("2002::/16").Contains(ip): // 6to4
			return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	for _, p := range notPublic {
		if p.Contains(ip) {
			return false
		}
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate() // loopback and link-local addresses are not global
}

// control rejects addresses that are not public. The dialer calls it with each resolved address.
func control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(at.Addr()) {
		return ErrPrivate
	}
	return nil
}

// newClient returns a client that follows no redirects and uses no proxy.
func newClient(allowPrivate bool, resolver *net.Resolver) *http.Client {
	d := &net.Dialer{Timeout: attemptLimit / 2, Resolver: resolver}
	if !allowPrivate {
		d.Control = control
	}
	return &http.Client{
		Transport: &http.Transport{DialContext: d.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: laneWorkers,
			IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: attemptLimit, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sign returns the message's signature with one secret: v1, HMAC-SHA256.
func sign(key []byte, id string, at time.Time, body []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%d.", id, at.Unix()) // never fails
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// signatures returns the message's signatures with the endpoint's valid secrets.
func (e *Endpoint) signatures(id string, now, at time.Time, body []byte) string {
	key, _ := signingKey(e.Secret) // decodeEndpoint has checked it
	all := sign(key, id, at, body)
	if previous, err := signingKey(e.Previous); err == nil && now.Before(e.Until) {
		all += " " + sign(previous, id, at, body)
	}
	return all
}

// An answer is the result of one request.
type answer struct {
	status int
	code   string        // why it failed; "": it was delivered
	wait   time.Duration // the response's Retry-After
	slow   bool          // the receiver is down or overloaded, so other messages would also fail
}

// send makes one request. It uses the machine's clock for the timestamp, which the receiver compares with its
// own.
func (s *Sender) send(ctx context.Context, e *Endpoint, m *Message) (answer, error) {
	body, err := m.body()
	if err != nil {
		return answer{}, err
	}
	at := s.machine()
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Duesday"}, "Webhook-Id": {m.ID},
		"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {e.signatures(m.ID, s.now(), at, body)}}
	got, err := s.client.Do(r)
	if err != nil {
		return answer{code: codeOf(ctx, err), slow: true}, nil
	}
	_, _ = io.CopyN(io.Discard, got.Body, answerBytes) // so that the connection can be reused
	_ = got.Body.Close()
	return answerOf(got), nil
}

func answerOf(got *http.Response) answer {
	a := answer{status: got.StatusCode}
	if a.status >= 200 && a.status < 300 {
		return a
	}
	a.code = "http_" + strconv.Itoa(a.status)
	a.slow = slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout}, a.status)
	if seconds, err := strconv.Atoi(got.Header.Get("Retry-After")); err == nil {
		a.wait = time.Duration(max(0, min(seconds, int(mostWait/time.Second)))) * time.Second
	}
	return a
}

// codeOf returns a code for the error, because the error's text may contain the URL.
func codeOf(ctx context.Context, err error) string {
	var dns *net.DNSError
	var late net.Error
	switch {
	case errors.Is(err, ErrPrivate):
		return codePrivate
	case ctx.Err() != nil || errors.As(err, &late) && late.Timeout():
		return "timeout"
	case errors.As(err, &dns):
		return "name_not_found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: "):
		return "tls"
	}
	return "connection"
}
