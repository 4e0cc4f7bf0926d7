package listen

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Caller returns the client's address, which is the nearest address in X-Forwarded-For that does
// not belong to a proxy. Caller trusts the header only from proxies. It ignores the header
// Forwarded, because a proxy that sets X-Forwarded-For may pass on its client's Forwarded. If a
// proxy sets no X-Forwarded-For, Caller returns the proxy's address.
func Caller(r *http.Request, proxies []netip.Prefix) string {
	at := r.RemoteAddr
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !trusts(proxies, addressOf(at)) {
			break
		}
		if hop = strings.TrimSpace(hop); !addressOf(hop).IsValid() {
			break // the proxy has not told
		}
		at = hop
	}
	return at
}

func trusts(proxies []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// addressOf reads an address with or without a port; the zero one if the text is none.
func addressOf(text string) netip.Addr {
	if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return ip.Unmap()
	}
	at, _ := netip.ParseAddrPort(text)
	return at.Addr().Unmap()
}
