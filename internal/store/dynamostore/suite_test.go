package dynamostore_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
)

// few lowers the number of random checks to what DynamoDB Local does in seconds, unless
// it was given.
func few(t *testing.T) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if soaktest.On() || checks.Value.String() != checks.DefValue {
		return
	}
	if err := checks.Value.Set("6"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Value.Set(checks.DefValue); err != nil {
			t.Error(err)
		}
	})
}

func TestSuite(t *testing.T) {
	few(t)
	dynamotest.Endpoint(t) // skips all of it, where that is to be skipped
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		if strings.Contains(t.Name(), "the_answer_is_lost") {
			return openLosing(t, tables, now)
		}
		return openLocal(t, tables, dynamostore.Options{Now: now})
	})
}

// TestSuiteUnderFaults has everything happen to requests that a retry makes good: the
// contract holds as if nothing had. Without soak it is the topics that are short.
func TestSuiteUnderFaults(t *testing.T) {
	few(t)
	endpoint := dynamotest.Endpoint(t)
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		if topic := strings.Split(t.Name(), "/")[1]; !soaktest.On() &&
			!slices.Contains([]string{"Update", "Atomicity", "Expiry", "ExpiredWrites", "Returned", "Model", "Unknown"},
				topic) {
			t.Skip("this topic is left to DUESDAY_SOAK=1")
		}
		p := dynamotest.NewProxy(t, endpoint, dynamotest.Options{Seed: 1, Rates: retried()})
		return openLocal(t, tables, dynamostore.Options{Now: now, Client: p.Client(), Pace: quick()})
	})
}

// retried are the faults that a retry makes good.
func retried() dynamotest.Rates {
	return dynamotest.Rates{
		dynamotest.Throughput: 0.03, dynamotest.Throttling: 0.03, dynamotest.Conflict: 0.03,
		dynamotest.TransactThrottle: 0.03,
		dynamotest.SmallPage:        0.7, dynamotest.EmptyPage: 0.1,
	}
}

// quick is a pace for tests: as many attempts as it takes, and hardly a wait.
func quick() dynamostore.Pace {
	return dynamostore.Pace{Attempt: 20 * time.Second, Total: 2 * time.Minute, First: time.Microsecond,
		Longest: time.Millisecond}
}
