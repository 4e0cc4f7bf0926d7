package session

import (
	"context"
	"fmt"
	"net"

	"github.com/duesday/duesday/internal/screen"
)

// ListenHost returns the host of the flag's address. A UsageError shows the usual address.
func ListenHost(flag, address, usual string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", screen.Usagef("%s must be HOST:PORT, such as %s (got %q)", flag, usual, address)
	}
	return host, nil
}

// ListenAt listens at the flag's address, which its errors name.
func ListenAt(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}
