package dynamostore_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// TestErrors has what the service may answer to a Get and to a put, and what the caller
// is told at once.
func TestErrors(t *testing.T) {
	bad := http.StatusBadRequest
	for _, c := range []struct {
		reply reply
		want  error  // nil: an error of no kind
		says  string // part of the text, %OP% being the operation
	}{
		{failure(bad, "ResourceNotFoundException"), store.ErrMissing, "DynamoDB has no table t"},
		{failure(bad, "AccessDeniedException"), nil, "dynamodb:%OP% on table t is not allowed"},
		{failure(bad, "UnrecognizedClientException"), nil, "dynamodb:%OP% on table t: AWS does not know these credentials; check"},
		{failure(bad, "ExpiredTokenException"), nil, "dynamodb:%OP% on table t: the AWS credentials have expired; get new ones"},
		{reply{bad, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired: ` +
			`20260101T000000Z is now earlier than 20260101T001000Z"}`}, nil, "clock differs from AWS's clock"},
		{reply{bad, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"The request signature we ` +
			`calculated does not match"}`}, nil, "check AWS_SECRET_ACCESS_KEY"},
		{invalid("The provided key element does not match the schema"), store.ErrInvalid, "keys differ from the keys that Duesday needs"},
		{invalid("One or more parameter values were invalid"), store.ErrInvalid, "invalid"},
		{invalid("Item size has exceeded the maximum allowed size"), store.ErrTooLarge, "maximum"},
		{invalid("The table does not have the specified index: x"), store.ErrMissing, "x"},
		{reply{http.StatusRequestEntityTooLarge, `{}`}, store.ErrTooLarge, "%OP%"},
		{reply{http.StatusForbidden, `{}`}, nil, "%OP%"},
	} {
		kinds := []error{store.ErrMissing, store.ErrInvalid, store.ErrTooLarge, store.ErrThrottled, store.ErrUnknown,
			store.ErrConflict}
		told := func(operation string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(c.says, "%OP%", operation)) {
				t.Errorf("%s: %v, want it to say %q", operation, err, c.says)
			}
			for _, kind := range kinds {
				if errors.Is(err, kind) != (kind == c.want) {
					t.Errorf("%s: %v, want %v", operation, err, c.want)
				}
			}
		}
		s, _ := scripted(t, c.reply)
		_, err := s.Get(t.Context(), "t", keyA)
		told("GetItem", err)
		replies := []reply{c.reply}
		if errors.Is(c.want, store.ErrTooLarge) {
			replies = append(replies, c.reply) // once more without the token
		}
		s, script := scripted(t, replies...)
		err = s.Commit(t.Context(), put)
		script.over()
		if len(replies) == 1 {
			told("PutItem", err)
		} else {
			told("TransactWriteItems", err)
		}
	}
}

// TestCutAnswers: a refusal that is cut off may be a throttle's, and is asked again.
func TestCutAnswers(t *testing.T) {
	whole := `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"Rate exceeded"}`
	for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			if asked.Add(1)%2 == 1 {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(whole[:n]))
				return
			}
			_, _ = w.Write([]byte(`{}`))
		}))
		s := openAt(t, server.URL)
		if _, err := s.Get(t.Context(), "t", keyA); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get after %q: %v", whole[:n], err)
		}
		if err := s.Commit(t.Context(), put); err != nil {
			t.Errorf("Commit after %q: %v", whole[:n], err)
		}
		if asked.Load() != 4 {
			t.Errorf("%d requests, want 4", asked.Load())
		}
		server.Close()
	}
}

// TestMistypedRegion: a name without an address is told at once, with the next step.
func TestMistypedRegion(t *testing.T) {
	_, err := openAt(t, "http://dynamodb.eu-wset-1.invalid").Get(t.Context(), "t", keyA)
	if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsNotFound {
		t.Skip("this machine's resolver does not answer")
	}
	if err == nil || !strings.Contains(err.Error(), "there is no DynamoDB at dynamodb.eu-wset-1.invalid; check the region") {
		t.Errorf("Get = %v", err)
	}
}

// TestPuts: a commit that puts into a table is told of; another is not.
func TestPuts(t *testing.T) {
	s, _ := scripted(t, done, done, done)
	told := func(what string, want int) {
		t.Helper()
		if n := len(s.Puts("t")); n != want {
			t.Errorf("%s: told %d times, want %d", what, n, want)
		}
	}
	told("nothing", 0)
	for range 2 {
		if err := s.Commit(t.Context(), put); err != nil {
			t.Fatal(err)
		}
		told("a put", 1)
	}
	<-s.Puts("t")
	if err := s.Commit(t.Context(), store.Delete("t", keyA)); err != nil {
		t.Fatal(err)
	}
	told("a deletion", 0)
}

func TestReadsAreRetried(t *testing.T) {
	s, script := scripted(t, busy, silence, broken, failure(http.StatusServiceUnavailable, "ServiceUnavailable"),
		reply{http.StatusTooManyRequests, `{}`}, got(theirs))
	it, err := s.Get(t.Context(), "t", keyA)
	if want := itemA(number("n", 7)); err != nil || !it.Equal(want) {
		t.Errorf("Get = %v, %v; want %v, without the token", it, err, want)
	}
	script.over("GetItem", "GetItem", "GetItem", "GetItem", "GetItem", "GetItem")
}

// TestNothingWasSent: an address that refuses connections cannot have got anything.
func TestNothingWasSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	pace := quick()
	pace.Total = 1 // over at once
	s, err := dynamostore.Open(t.Context(), dynamostore.Options{
		Tables: []store.Table{{Name: "t", PartitionKey: "id"}},
		Client: dynamotest.ClientAt("http://" + listener.Addr().String()), Pace: pace,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), put); err == nil || errors.Is(err, store.ErrUnknown) ||
		!strings.Contains(err.Error(), "cannot reach DynamoDB") {
		t.Errorf("Commit = %v, want that DynamoDB cannot be reached", err)
	}
}

// TestTheCallerLeaves: a context that ends while a write is under way leaves its outcome
// unknown, and says why.
func TestTheCallerLeaves(t *testing.T) {
	for _, writes := range [][]store.Write{{put}, {put, store.Delete("t", store.Key{PK: "b"})}} {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-gone
		}))
		err := openAt(t, server.URL).Commit(ctx, writes...)
		close(gone)
		server.Close()
		if !errors.Is(err, store.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("Commit = %v, want ErrUnknown and context.Canceled", err)
		}
	}
}

func TestReservedAttribute(t *testing.T) {
	s, script := scripted(t)
	token := store.Attribute{Name: "_token", Value: store.S("x")}
	for _, w := range []store.Write{
		store.Put("t", itemA(token)), store.Update("t", keyA, store.NewItem(token), nil), store.Update("t", keyA, nil,
			[]string{"_token"}),
		store.Check("t", keyA, store.AttributeAbsent("_token")), store.Delete("t", keyA,
			store.AttributeEquals("_token", store.S("x"))),
	} {
		if err := s.Commit(t.Context(), w); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Commit = %v, want ErrInvalid", err)
		}
	}
	script.over()
}

func TestCloseWaitsForCommits(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	var answered atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-answer
		answered.Store(true)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if _, err := w.Write([]byte("{}")); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	s := openAt(t, server.URL)
	committed, closed := make(chan error, 1), make(chan error, 1)
	go func() { committed <- s.Commit(t.Context(), put) }()
	<-arrived
	for range 2 {
		go func() {
			err := s.Close()
			if err == nil && !answered.Load() {
				err = errors.New("Close came back before the commit")
			}
			closed <- err
		}()
	}
	if err := <-closed; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Close while another one waits = %v, want ErrClosed at once", err)
	}
	if _, err := s.Get(t.Context(), "t", store.Key{PK: "a"}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Get while Close waits = %v, want ErrClosed at once", err)
	}
	close(answer)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-committed; err != nil {
		t.Errorf("Commit = %v", err)
	}
}

func TestDial_NothingToBeFound(t *testing.T) {
	dynamotest.Setenv(t)
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	if _, err := dynamostore.Dial(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("Dial without a region = %v", err)
	}
	if c, err := dynamostore.Dial(t.Context(), "eu-west-1", ""); err != nil || c.Options().Region != "eu-west-1" ||
		c.Options().RetryMaxAttempts > 1 {
		t.Errorf("Dial = %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := dynamostore.Dial(t.Context(), "eu-west-1", ""); err == nil ||
		!strings.Contains(err.Error(), "no AWS credentials") {
		t.Errorf("Dial without credentials = %v", err)
	}
}
