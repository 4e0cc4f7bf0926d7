package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/store"
)

// Options configure how to open a store.
type Options struct {
	// Tables are the tables this program uses, under their names in DynamoDB.
	Tables []store.Table
	// Now is the clock for expiry; nil is time.Now.
	Now func() time.Time
	// Client is made by Dial.
	Client *dynamodb.Client
	// Pace bounds the retries; a zero field has its default.
	Pace Pace
	// Logger hears of writes whose outcome stays unknown, and of lost answers (Debug); nil: silent.
	Logger *slog.Logger
}

// A Store is a store.Store in DynamoDB.
type Store struct {
	store.Notices
	schema store.Schema
	client *dynamodb.Client
	now    func() time.Time
	pace   Pace
	log    *slog.Logger
	usage  usage
	clock  clock.Peer // DynamoDB's, by the answers to Get

	answered atomic.Bool // DynamoDB has: a name that cannot be resolved is not a mistyped one

	closed atomic.Bool
	gate   sync.RWMutex // held shared during a request, exclusively while Close waits for them
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Noticer = (*Store)(nil)
)

// Open returns a store of these tables. It sends no request.
func Open(ctx context.Context, o Options) (*Store, error) {
	schema, err := store.NewSchema(o.Tables...)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{schema: schema, client: o.Client, now: o.Now, pace: o.Pace.orDefault(), log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	var once sync.Once // told once: a run of an hour need not be told again
	s.pace.told = func(err error) {
		once.Do(func() {
			s.log.LogAttrs(ctx, slog.LevelWarn, "DynamoDB refuses requests; the store tries again", slog.Any("error", err))
		})
	}
	return s, nil
}

// enter begins a request, which leave ends; it fails on a closed store.
func (s *Store) enter() error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if s.gate.RLock(); s.closed.Load() {
		s.gate.RUnlock()
		return store.ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.gate.RUnlock() }

// Client returns the client of the store, for requests about its tables.
func (s *Store) Client() *dynamodb.Client { return s.client }

// ClockAhead returns how far DynamoDB's clock was ahead of ours at its last answer to Get, or zero.
func (s *Store) ClockAhead() (ahead time.Duration, at time.Time) { return s.clock.Ahead() }

// Close implements store.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return store.ErrClosed
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	return nil
}

// usage sums the capacity consumed, as DynamoDB reports it.
type usage struct {
	mu          sync.Mutex
	read, write float64 // guarded by mu
}

// Consumed returns the read and write units DynamoDB has reported for this store's requests so far.
// It reports none for a failed request, a failed condition or a lost answer: those cost units too.
// The repetition of a landed transaction is counted as writes, and charged as reads.
func (s *Store) Consumed() (read, write float64) {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	return s.usage.read, s.usage.write
}

func (u *usage) reads(c *types.ConsumedCapacity) { u.add(&u.read, c) }

func (u *usage) writes(c *types.ConsumedCapacity) { u.add(&u.write, c) }

func (u *usage) add(sum *float64, c *types.ConsumedCapacity) {
	if c != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		*sum += aws.ToFloat64(c.CapacityUnits)
	}
}

const (
	maxIdleConnections = 256 // to one host; a run's workers each keep theirs
	connectTimeout     = 3 * time.Second
	idleTimeout        = 60 * time.Second
	findCredentials    = 15 * time.Second // an instance role is asked over the network
)

// Dial returns a client that uses the SDK's default chain, with the given region and endpoint
// instead of the chain's. The client does not retry, and its only time limit is for connecting.
// Dial returns an error if there is no region or there are no credentials. It sends no request to
// DynamoDB.
func Dial(ctx context.Context, region, endpoint string) (*dynamodb.Client, error) {
	transport := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*maxIdleConnections, maxIdleConnections
			t.IdleConnTimeout = idleTimeout
			t.TLSHandshakeTimeout = connectTimeout
		})
	// The SDK's own log is off: the errors have all facts, and it warns of each error's unread body.
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(transport), config.WithRegion(region),
		config.WithLogger(logging.Nop{}), config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("the AWS region is not set; use dynamodb:?region=eu-west-1 as the store URL, or set AWS_REGION")
	}
	if err := haveCredentials(ctx, cfg.Credentials); err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	}), nil
}

func haveCredentials(ctx context.Context, from aws.CredentialsProvider) error {
	ctx, cancel := context.WithTimeout(ctx, findCredentials)
	defer cancel()
	if from == nil {
		return errors.New("no AWS credentials are configured")
	}
	if _, err := from.Retrieve(ctx); err != nil {
		return fmt.Errorf("no AWS credentials: the SDK's default chain (environment, ~/.aws, web identity, "+
			"container or instance role) found none: %w", err)
	}
	return nil
}
