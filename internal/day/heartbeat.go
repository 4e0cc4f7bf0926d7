package day

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// heartbeatLimit is the time that a monitor has to answer.
const heartbeatLimit = 10 * time.Second

// Heartbeat returns a function that gets the address of a monitor, for Options.Finished. The address
// must be https, or http on this machine. Errors do not show its path and query: they are its secret.
func Heartbeat(address string) (func(context.Context) error, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())) {
		return nil, fmt.Errorf("must be an https address such as https://hc.example/ping/ID, or http on this machine")
	}
	client := &http.Client{Timeout: heartbeatLimit}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if e, ok := err.(*url.Error); ok {
			return fmt.Errorf("the monitor at %s: %w", u.Host, e.Err)
		}
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode >= 300 {
			return fmt.Errorf("the monitor at %s answered %s", u.Host, answer.Status)
		}
		return nil
	}, nil
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
