package storeurl

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

var tables = []store.Table{{Name: "t", PartitionKey: "id"}}

// openURL parses the URL and opens the place.
func openURL(ctx context.Context, text string, o Options) (store.Store, error) {
	p, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return p.Open(ctx, o)
}

func TestOpen(t *testing.T) {
	for _, url := range []string{"mem:", "pebble:" + filepath.Join(t.TempDir(), "a:b", "store")} {
		s, err := openURL(t.Context(), url, Options{Tables: tables, Create: true})
		if err != nil {
			t.Errorf("Open(%q): %v", url, err)
			continue
		}
		it := store.NewItem(store.Attribute{Name: "id", Value: store.S("1")})
		if err := s.Commit(t.Context(), store.Put("t", it)); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if got, err := s.Get(t.Context(), "t", store.Key{PK: "1"}); err != nil || !got.Equal(it) {
			t.Errorf("%s: Get shows %v, %v", url, got, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestOpen_DynamoDB opens without asking the service, so that what is missing shows at
// the first request.
func TestOpen_DynamoDB(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	dynamotest.Setenv(t)
	name := dynamotest.Prefix(t) + "none"
	s, err := openURL(t.Context(), "dynamodb:?endpoint="+endpoint,
		Options{Tables: []store.Table{{Name: name, PartitionKey: "id"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), name, store.Key{PK: "1"}); !errors.Is(err, store.ErrMissing) ||
		!strings.Contains(err.Error(), name) {
		t.Errorf("Get = %v, want ErrMissing and the table's name", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Setenv("AWS_REGION", "")
	if s, err := openURL(t.Context(), "dynamodb:", Options{Tables: tables}); s != nil || err == nil ||
		!strings.Contains(err.Error(), "the AWS region is not set") {
		t.Errorf("Open without a region = %v, %v", s, err)
	}
}

func TestOpenErrors(t *testing.T) {
	for _, test := range []struct {
		url, want string
		is        error
	}{
		{"", "the store URL is empty: the store must be pebble:DIR, dynamodb:?region=REGION or mem:", ErrURL},
		{"foo:bar", `unknown store scheme "foo": the store must be pebble:DIR, dynamodb:?region=REGION or mem:`, ErrURL},
		{"Pebble:bar", `unknown store scheme "Pebble": the store must be pebble:DIR, dynamodb:?region=REGION or mem:`, ErrURL},
		{"./data", `store "./data" has no scheme: the store must be pebble:DIR, dynamodb:?region=REGION or mem: (did you mean "pebble:./data"?)`, ErrURL},
		{"pebble:", `store "pebble:" does not name a folder: the store must be pebble:DIR, dynamodb:?region=REGION or mem:`, ErrURL},
		{"mem:x", `store mem: must have nothing after the colon`, ErrURL},
		{"pebble:" + filepath.Join(t.TempDir(), "none"), "no store here", store.ErrMissing},
	} {
		s, err := openURL(t.Context(), test.url, Options{Tables: tables})
		if s != nil || !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Open(%q) = %v, %v, want no store and %q", test.url, s, err, test.want)
		}
	}
	if s, err := openURL(t.Context(), "mem:", Options{Tables: []store.Table{{}}}); s != nil ||
		!errors.Is(err, store.ErrInvalid) {
		t.Errorf("Open with a bad table = %v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openURL(ctx, "mem:", Options{Tables: tables}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open after the context has ended: %v", err)
	}
}
