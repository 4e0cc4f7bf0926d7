package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/server"
)

const sandboxAddress = "127.0.0.1:12121"

func (p *program) sandboxCommand() *cobra.Command {
	var listen string
	c := leaf("sandbox", "Serve the built-in processor to other users and machines",
		func(ctx context.Context, _ []string) error { return p.serveSandbox(ctx, listen) })
	c.Flags().StringVar(&listen, "listen", sandboxAddress, "`ADDR` to be reached at, HOST:PORT; port 0 takes a free one")
	return c
}

func (p *program) serveSandbox(ctx context.Context, listen string) (err error) {
	if _, err := listenHost(listen, sandboxAddress); err != nil {
		return err
	}
	box, err := p.openLedger(ctx, p.now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	l, err := p.listenOpen(ctx, listen, "use this ledger", func(at net.Addr, base string) error {
		p.say("%s is served at %s: use it with --processor %s", p.cfg.Processor, at, quoted("sandbox:"+base))
		return p.sayServed(object{"address", at.String(), "processor", "sandbox:" + base, "ledger", p.cfg.Processor})
	})
	if err != nil {
		return err
	}
	return sandbox.Serve(ctx, l, box, p.logger())
}

func listenHost(listen, usual string) (string, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return "", usagef("--listen %q: want HOST:PORT, such as %s", listen, usual)
	}
	return host, nil
}

func listenAt(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return l, nil
}

// listenOpen listens for a server without a password, and tells the address, and the URL at which
// this machine reaches it. It warns if other machines reach it too, with their power.
func (p *program) listenOpen(ctx context.Context, address, power string,
	tell func(at net.Addr, base string) error) (net.Listener, error) {
	l, err := listenAt(ctx, address)
	if err != nil {
		return nil, err
	}
	at := l.Addr()
	if host, _, err := net.SplitHostPort(at.String()); err == nil && !net.ParseIP(host).IsLoopback() {
		p.warn("whoever reaches %s can %s: it asks for no password", at, power)
	}
	base, err := server.LocalBase(at)
	if err == nil {
		err = tell(at, base)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// sayServed prints the view as a line of JSON, by which a program finds the server, if JSON is
// wanted, and flushes the output: the starter of the server waits for it.
func (p *program) sayServed(view any) error {
	if p.cfg.JSON {
		if err := writeValue(p.stdout, view); err != nil {
			return err
		}
		p.stdout.WriteString("\n")
	}
	return p.stdout.Flush()
}

// openLedger opens the ledger's file, or one in memory.
func (p *program) openLedger(ctx context.Context, now func() time.Time) (sandbox.Ledger, error) {
	file, o, err := sandbox.Parse(p.cfg.Processor)
	if err != nil {
		return nil, &usageError{err}
	}
	o.Now, o.Version, o.Holder = now, buildVersion().text(), p.command
	return sandbox.Share(ctx, file, o)
}
