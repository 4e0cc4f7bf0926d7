// Package storeurl opens the store that a URL names: "pebble:DIR" for a folder on this machine, "dynamodb:"
// for tables in DynamoDB, or "mem:" for a store that ends with the process. Only this package knows every
// engine. Other packages know only the interface of package store.
//
// It does not copy between stores, and creates nothing unless Options.Create asks for it.
package storeurl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/folder"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// Options are for all engines. Each engine uses the options that concern it.
type Options struct {
	Tables []store.Table
	Names  []string         // known attribute names; see pebblestore.Options
	Now    func() time.Time // the clock for expiry; nil is time.Now
	Create bool             // make the store when there is none
	Holder string           // this process, as other processes are told if they find the store in use

	// Of a pebble: store, which the processes of one user share; see package folder.
	Version  string // of Duesday
	Revision int    // of Tables; see pebblestore.Options
	Clock    string // a test clock; "": the machine's, or that of the processes at work
	Lasting  bool   // the process stays
	Alone    bool   // other processes are kept out, and nobody is asked
	Reads    bool   // the process only reads: also in a folder that nobody can write

	Logger     *slog.Logger // nil is silent
	CacheBytes int64        // 0 is the engine's default
}

// ErrURL is returned for an invalid store URL. Its text shows a valid one.
var ErrURL = errors.New("bad store URL")

// Open opens the store at the place. The errors are the engine's, such as store.ErrMissing.
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
		po := pebblestore.Options{Tables: o.Tables, Revision: o.Revision, Program: o.Version, Names: o.Names, Now: o.Now, Create: o.Create,
			CacheBytes: o.CacheBytes, Logger: o.Logger, Holder: o.Holder}
		if o.Alone {
			return opened(pebblestore.Open(p.Folder, po))
		}
		return opened(folder.Open(ctx, p.Folder, folder.Options{Options: po, Version: o.Version, Clock: o.Clock,
			Lasting: o.Lasting, Reads: o.Reads}))
	case "dynamodb":
		return p.openTables(ctx, o)
	}
	return nil, urlError("the store scheme %q cannot be opened: %s", p.Scheme, forms)
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

// openTables opens a dynamodb: place. Options.Create makes missing tables, of on-demand capacity.
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
		_, err = dynamotable.Create(ctx, client, missing, dynamotable.Settings{}, nil)
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

// A Place is a parsed store URL.
type Place struct {
	Scheme string // pebble, mem or dynamodb
	Folder string // of pebble:

	// Of dynamodb:, each "" when the URL does not say it.
	Prefix         string // begins the names of all tables
	RecurringTable string // name of the recurring-payments table, when it has one of its own
	Region         string // else the SDK's default chain decides
	Endpoint       string // base URL of the service, such as DynamoDB Local's
}

const forms = "the store must be pebble:DIR, dynamodb:?region=REGION or mem:"

// Parse reads a store URL. Its errors are ErrURL, and show no part that could be a password.
func Parse(text string) (Place, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case text == "":
		return Place{}, urlError("the store URL is empty: %s", forms)
	case !ok:
		return Place{}, urlError("store %q has no scheme: %s (did you mean %q?)", text, forms, "pebble:"+text)
	case scheme == "mem" && rest != "":
		return Place{}, urlError("store mem: must have nothing after the colon")
	case scheme == "pebble" && rest == "":
		return Place{}, urlError("store %q does not name a folder: %s", text, forms)
	case scheme == "mem", scheme == "pebble":
		return Place{Scheme: scheme, Folder: rest}, nil
	case scheme == "dynamodb":
		return parseDynamo(rest)
	case plain(scheme, ""):
		return Place{}, urlError("unknown store scheme %q: %s", scheme, forms)
	}
	return Place{}, urlError("unknown store scheme: %s", forms)
}

// Shared reports whether several processes may work on the store at once.
func (p Place) Shared() bool { return p.Scheme == "dynamodb" }

const dynamoParameters = "endpoint, prefix, recurring_table, region"

func parseDynamo(rest string) (Place, error) {
	rest = strings.TrimPrefix(rest, "//")
	p := Place{Scheme: "dynamodb"}
	if rest == "" {
		return p, nil
	}
	query, ok := strings.CutPrefix(rest, "?")
	values, err := url.ParseQuery(query)
	if !ok || err != nil {
		return Place{}, urlError("store dynamodb: must be dynamodb:?NAME=VALUE&..., with the names %s", dynamoParameters)
	}
	for name, list := range values {
		at, known := map[string]*string{"prefix": &p.Prefix, "recurring_table": &p.RecurringTable,
			"region": &p.Region, "endpoint": &p.Endpoint}[name]
		switch {
		case !known && plain(name, "_"):
			return Place{}, urlError("store dynamodb: unknown parameter %q; must be one of %s", name, dynamoParameters)
		case !known:
			return Place{}, urlError("store dynamodb: unknown parameter; must be one of %s", dynamoParameters)
		case len(list) > 1 || list[0] == "":
			return Place{}, urlError("store dynamodb: parameter %s must have one value", name)
		}
		*at = list[0]
	}
	if err := p.check(); err != nil {
		return Place{}, err
	}
	return p, nil
}

// check refuses names and endpoints invalid in DynamoDB, and brings the endpoint into one form.
func (p *Place) check() (err error) {
	for _, n := range [...]struct {
		parameter, value string
		shortest         int
	}{{"prefix", p.Prefix, 0}, {"recurring_table", p.RecurringTable, 3}} {
		if !plain(n.value, "_.-") {
			return urlError("store dynamodb: %s must contain only letters, digits and _ . -", n.parameter)
		}
		if len(n.value) > 200 || (n.value != "" && len(n.value) < n.shortest) {
			return urlError("store dynamodb: %s is too short or too long for DynamoDB", n.parameter)
		}
	}
	if !plain(p.Region, "-") || len(p.Region) > 50 {
		return urlError("store dynamodb: region must be a region's code, such as eu-west-1")
	}
	p.Endpoint, err = base(p.Endpoint)
	return err
}

// base returns the base URL of an endpoint: scheme and host.
func base(endpoint string) (string, error) {
	if endpoint == "" {
		return "", nil
	}
	const want = "store dynamodb: endpoint must be http://HOST:PORT or https://HOST"
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https"):
		return "", urlError(want)
	case u.User != nil:
		return "", urlError("%s, without a user and password; credentials come from the SDK's default chain",
			want)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(endpoint, "#") ||
		u.Path != "" && u.Path != "/":
		return "", urlError("%s, with nothing after it", want)
	case u.Hostname() == "" || !plain(u.Host, "_.-:[]"):
		return "", urlError("%s, in letters and digits", want)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", urlError("%s, and a port from 1 to 65535", want)
		}
	}
	return u.Scheme + "://" + u.Host, nil
}

// plain reports whether the text has only ASCII letters, digits and the characters in more.
func plain(text, more string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
	})
}
