// Package storeurl opens the store of a URL: "pebble:DIR" for a folder on this machine, "dynamodb:"
// for tables in DynamoDB, "mem:" for a store that ends with the process. It alone knows every
// engine; everybody else knows the contract.
//
// It does not copy between stores, and creates nothing unless Options.Create asks for it.
package storeurl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// Options are for all engines. Each engine uses the options that concern it.
type Options struct {
	Tables     []store.Table
	Names      []string         // known attribute names, append only; see pebblestore.Options
	Now        func() time.Time // the clock for expiry; nil is time.Now
	Create     bool             // make the store when there is none
	Holder     string           // this process, as other processes are told if they find the store in use
	Logger     *slog.Logger     // nil is silent
	CacheBytes int64            // 0 is the engine's default
}

// ErrURL is returned for an invalid store URL. Its text shows a valid one.
var ErrURL = errors.New("bad store URL")

// Open opens the store at url. The errors are the engine's (store.ErrMissing,
// ErrLocked, ErrFormat among them) or ErrURL.
func Open(ctx context.Context, url string, o Options) (store.Store, error) {
	p, err := Parse(url)
	if err != nil {
		return nil, err
	}
	return p.Open(ctx, o)
}

// Open opens the store at the place, as the package's Open does.
func (p Place) Open(ctx context.Context, o Options) (store.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch p.Scheme {
	case "mem":
		now := o.Now
		if now == nil {
			now = time.Now
		}
		return opened(memstore.Open(o.Tables, now))
	case "pebble":
		return opened(pebblestore.Open(p.Folder, pebblestore.Options{
			Tables: o.Tables, Names: o.Names, Now: o.Now, Create: o.Create,
			CacheBytes: o.CacheBytes, Logger: o.Logger, Holder: o.Holder,
		}))
	case "dynamodb":
		return p.openTables(ctx, o)
	}
	return nil, urlError("a store of scheme %q cannot be opened: %s", p.Scheme, forms)
}

// opened returns a nil store.Store for a nil engine.
func opened[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// A badURL is ErrURL with its own message.
type badURL string

func urlError(format string, args ...any) error { return badURL(fmt.Sprintf(format, args...)) }

func (e badURL) Error() string { return string(e) }

func (e badURL) Is(target error) bool { return target == ErrURL }
