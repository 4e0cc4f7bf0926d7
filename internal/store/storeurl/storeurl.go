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
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
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
		if o.Now == nil {
			o.Now = time.Now
		}
		return opened(memstore.Open(o.Tables, o.Now))
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

// openTables opens a dynamodb: place. With Options.Create it makes missing tables, on demand;
// store create makes them with other settings.
func (p Place) openTables(ctx context.Context, o Options) (store.Store, error) {
	client, err := dynamostore.Dial(ctx, p.Region, p.Endpoint)
	if err != nil {
		return nil, err
	}
	s, err := dynamostore.Open(ctx, dynamostore.Options{Tables: o.Tables, Now: o.Now, Client: client, Logger: o.Logger})
	if err != nil || !o.Create {
		return opened(s, err)
	}
	missing, err := missing(ctx, s, o.Tables)
	if err == nil && len(missing) > 0 {
		_, err = dynamotable.Ensure(ctx, client, missing)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// missing returns the tables without an answer to a Get. A Get needs no rights beyond those of a
// run, and reveals nothing of another program's table.
func missing(ctx context.Context, s store.Store, tables []store.Table) (missing []store.Table, err error) {
	for _, t := range tables {
		key := store.Key{PK: "-"}
		if t.SortKey != "" {
			key.SK = "-"
		}
		_, err := s.Get(ctx, t.Name, key)
		switch {
		case errors.Is(err, store.ErrMissing):
			missing = append(missing, t)
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	return missing, nil
}
