package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/duesday/duesday/internal/store"
)

// A service answers requests without a network, so that time can be made to pass.
type service func(r *http.Request, body string) (status int, answer string, err error)

func (s service) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, answer, err := s(r, string(body))
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader([]byte(answer))),
	}, nil
}

func openOn(t *testing.T, s service, p Pace) *Store {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://service.invalid"), Region: "r", Retryer: aws.NopRetryer{}, HTTPClient: s,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "key"}, nil
		}),
	})
	d, err := Open(t.Context(), Options{Tables: []store.Table{
		{Name: "t", PartitionKey: "id", SortKey: "sk", Indexes: []store.Index{{Name: "x", PartitionKey: "x"}}},
	}, Client: client, Pace: p})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// iterations are one of each kind.
func iterations(ctx context.Context, s *Store) map[string]iter.Seq2[store.Item, error] {
	return map[string]iter.Seq2[store.Item, error]{
		"Query": s.Query(ctx, store.Query{Table: "t", Partition: "a"}),
		"index": s.Query(ctx, store.Query{Table: "t", Index: "x", Partition: "a"}),
		"Scan":  s.Scan(ctx, store.Scan{Table: "t"}),
	}
}

const (
	busyAnswer = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"no"}`
	denied     = `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"no"}`
	firstPage  = `{"Items":[{"id":{"S":"a"},"sk":{"S":"1"}}],"LastEvaluatedKey":{"id":{"S":"a"},"sk":{"S":"1"}}}`
	nextPage   = `{"Items":[{"id":{"S":"a"},"sk":{"S":"2"}}],"LastEvaluatedKey":{"id":{"S":"a"},"sk":{"S":"1"}}}`
	lastPage   = `{"Items":[{"id":{"S":"a"},"sk":{"S":"3"}}]}`
)

func read(rows iter.Seq2[store.Item, error]) (sorts []string, err error) {
	for it, e := range rows {
		if err = e; e == nil {
			sorts = append(sorts, it.Str("sk"))
		}
	}
	return sorts, err
}

// TestIterations_Throttled: each page has all of the pace to itself.
func TestIterations_Throttled(t *testing.T) {
	p := Pace{Total: 30 * time.Second}.orDefault()
	for _, name := range []string{"Query", "index", "Scan"} {
		synctest.Test(t, func(t *testing.T) {
			pages, page, since, begin := []string{firstPage, nextPage, lastPage}, 0, time.Now(), time.Now()
			s := openOn(t, func(*http.Request, string) (int, string, error) {
				if time.Since(since) < 20*time.Second {
					return 400, busyAnswer, nil
				}
				since, page = time.Now(), page+1
				return 200, pages[page-1], nil
			}, p)
			sorts, err := read(iterations(t.Context(), s)[name])
			if err != nil || !slices.Equal(sorts, []string{"1", "2", "3"}) {
				t.Errorf("%s = %v, %v; want three rows", name, sorts, err)
			}
			if took := time.Since(begin); took <= p.Total {
				t.Errorf("%s took %s: this proves nothing", name, took)
			}
		})
	}
}

// TestIterations_Exhausted: what was read is yielded, then that it was throttled, also when
// the last attempt was cut short by the end of all.
func TestIterations_Exhausted(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for _, name := range []string{"Query", "index", "Scan"} {
			synctest.Test(t, func(t *testing.T) {
				begin, n := time.Now(), 0
				s := openOn(t, func(r *http.Request, _ string) (int, string, error) {
					if n++; n == 1 {
						return 200, firstPage, nil
					}
					if silent && time.Since(begin) > 3*time.Second {
						<-r.Context().Done()
						return 0, "", r.Context().Err()
					}
					return 400, busyAnswer, nil
				}, Pace{Total: 5 * time.Second}.orDefault())
				sorts, err := read(iterations(t.Context(), s)[name])
				if !errors.Is(err, store.ErrThrottled) || !slices.Equal(sorts, []string{"1"}) || n < 4 {
					t.Errorf("%s, then silence %t = %v, %v after %d requests; want one row and ErrThrottled", name, silent,
						sorts, err, n)
				}
			})
		}
	}
}

// TestIterations_Refused: a page that is refused is not asked for again.
func TestIterations_Refused(t *testing.T) {
	for _, name := range []string{"Query", "index", "Scan"} {
		answers := []string{firstPage, busyAnswer, denied}
		n := 0
		s := openOn(t, func(*http.Request, string) (int, string, error) {
			n++
			if n == 1 {
				return 200, answers[0], nil
			}
			return 400, answers[min(n, len(answers))-1], nil
		}, Pace{First: time.Nanosecond}.orDefault())
		sorts, err := read(iterations(t.Context(), s)[name])
		if err == nil || !strings.Contains(err.Error(), "not allowed") || errors.Is(err, store.ErrThrottled) ||
			!slices.Equal(sorts, []string{"1"}) || n != 3 {
			t.Errorf("%s = %v, %v after %d requests; want one row, then that it is not allowed", name, sorts, err, n)
		}
	}
}

// TestReadsAreStrong: all but those of an index, which DynamoDB has no strong ones of.
func TestReadsAreStrong(t *testing.T) {
	var bodies []string
	s := openOn(t, func(_ *http.Request, body string) (int, string, error) {
		bodies = append(bodies, body)
		return 200, `{"Items":[]}`, nil
	}, Pace{})
	key := store.Key{PK: "a", SK: "1"}
	if _, err := s.Get(t.Context(), "t", key); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if err := s.Commit(t.Context(), store.Check("t", key, store.Absent())); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"Query", "Scan", "index"} {
		if _, err := read(iterations(t.Context(), s)[name]); err != nil {
			t.Error(err)
		}
	}
	for i, want := range []bool{true, true, true, true, false} {
		if strong := strings.Contains(bodies[i], `"ConsistentRead":true`); strong != want {
			t.Errorf("request %d is strong: %t, want %t: %s", i, strong, want, bodies[i])
		}
	}
}
