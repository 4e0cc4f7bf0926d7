package main

import (
	"fmt"
	"maps"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/dynamotest"
)

// TestServe_IdleOnDynamoDB: a serve with Stripe, daily times and a key, and without traffic, asks DynamoDB
// less than 2,000 requests an hour, and the looks at its queues are not consistent ones. A test clock
// makes half an hour of half a minute; a slow machine asks less.
func TestServe_IdleOnDynamoDB(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	c := newServeCLI(t)
	proxy := dynamotest.NewProxy(t, dynamotest.Endpoint(t), dynamotest.Options{})
	at := "dynamodb:?" + url.Values{"prefix": {dynamotest.Prefix(t)}, "endpoint": {proxy.URL()},
		"region": {dynamotest.Region}}.Encode()
	c.must("store", "create", "--store", at)
	c.must("settings", "set", "daily=06:10", "--store", at)
	c.must("key", "create", "shop", "--scope", "charge", "--store", at)
	var mu sync.Mutex
	ran, asked, kinds := time.Now(), 0, map[string]int{}
	proxy.SetHook(func(r dynamotest.Request) dynamotest.Fault {
		mu.Lock()
		defer mu.Unlock()
		asked++
		kinds[fmt.Sprintln(r.Operation, r.Body["TableName"], r.Body["IndexName"], r.Body["ConsistentRead"])]++
		if r.Body["IndexName"] != nil || r.Operation == "TransactWriteItems" {
			ran = time.Now() // a run goes on
		}
		return dynamotest.Pass
	})
	c.serveBy(time.Now, "--store", at, "--clock", "2040-01-01,1m/s")
	count := func() int { mu.Lock(); defer mu.Unlock(); return asked }
	for rests := false; !rests; time.Sleep(time.Second / 4) { // both jobs have run, and the waits are at their longest
		mu.Lock()
		rests = time.Since(ran) > 6*time.Second
		mu.Unlock()
	}
	mu.Lock()
	clear(kinds)
	mu.Unlock()
	was, began := count(), time.Now()
	time.Sleep(30 * time.Second)
	hourly := float64(count()-was) * time.Minute.Seconds() / time.Since(began).Seconds()
	t.Logf("%.0f requests an hour", hourly)
	if hourly >= 2000 || hourly < 100 {
		mu.Lock()
		t.Errorf("%.0f requests an hour: %v", hourly, maps.Clone(kinds))
		mu.Unlock()
	}
}
