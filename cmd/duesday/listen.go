package main

import (
	"context"
	"fmt"
	"net"

	"github.com/duesday/duesday/internal/screen"
)

func ListenHost(flag, address, usual string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", screen.Usagef("%s must be HOST:PORT, such as %s (got %q)", flag, usual, address)
	}
	return host, nil
}

func ListenAt(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}
