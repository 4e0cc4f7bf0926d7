package serving

import (
	"math"
	"net/netip"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/screen"
)

const mostConnections = 1024

// limitFlags holds the flags that limit the resources that unknown callers can use.
type limitFlags struct {
	connections int
	proxies     []string
	trusted     []netip.Prefix // parsed from proxies
}

func (o *limitFlags) add(f *pflag.FlagSet) {
	f.IntVar(&o.connections, "max-connections", mostConnections,
		"maximum `NUMBER` of connections per listener, up to a quarter of the files that the process may open")
	f.StringSliceVar(&o.proxies, "trusted-proxy", nil, "`CIDR` of proxies whose X-Forwarded-For names the caller, such as 10.0.0.0/8 (repeatable)")
}

// check validates the flags. If the process may open only a few files, check lowers the default
// number of connections, and rejects a higher number from the user.
func (o *limitFlags) check(f *pflag.FlagSet) error {
	if o.connections < 1 {
		return screen.Usagef("--max-connections must be 1 or more (got %d)", o.connections)
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	if most := max(1, int(min(uint64(files.Cur)/4, math.MaxInt32))); o.connections > most {
		if f.Changed("max-connections") {
			return screen.Usagef("--max-connections must be at most %d, a quarter of the %d files that this process may open with ulimit -Hn (got %d)",
				most, files.Cur, o.connections)
		}
		o.connections = most
	}
	for _, text := range o.proxies {
		proxy, err := netip.ParsePrefix(text)
		if ip, plain := netip.ParseAddr(text); plain == nil {
			proxy, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil || proxy.Addr().Is4In6() { // it would never match, because callers' addresses are unmapped
			return screen.Usagef("--trusted-proxy must be an address or a CIDR block, such as 10.0.0.7 or 10.0.0.0/8 (got %q)", text)
		}
		o.trusted = append(o.trusted, proxy)
	}
	return nil
}
