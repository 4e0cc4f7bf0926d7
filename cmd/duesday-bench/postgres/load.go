package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A sample is what one round measured.
type sample struct {
	perSecond, p50, p99, cpu float64 // milliseconds, and CPU microseconds of the server per request
}

// load sends requests over the connections for the time, one after another on each.
func load(address string, connections int, length time.Duration, next func(worker, n int) string, want int) (n int, s sample, err error) {
	took := make([][]time.Duration, connections)
	errs := make([]error, connections)
	start := time.Now()
	var all sync.WaitGroup
	for worker := range connections {
		all.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				errs[worker] = err
				return
			}
			defer c.Close()
			in := bufio.NewReader(c)
			for n := 0; time.Since(start) < length && errs[worker] == nil; n++ {
				begun := time.Now()
				errs[worker] = exchange(c, in, next(worker, n), want)
				took[worker] = append(took[worker], time.Since(begun))
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, s, err
		}
	}
	every := slices.Concat(took...)
	slices.Sort(every)
	ms := func(percent int) float64 { return every[(len(every)-1)*percent/100].Seconds() * 1000 }
	return len(every), sample{float64(len(every)) / elapsed.Seconds(), ms(50), ms(99), 0}, nil
}

func exchange(c net.Conn, in *bufio.Reader, request string, want int) error {
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != want {
		err = fmt.Errorf("%s: %s", r.Status, body)
	}
	return err
}

const head = " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "

// creates returns the requests of a round that create subscriptions, each for a new account.
func creates(key string, round int) func(worker, n int) string {
	return func(worker, n int) string {
		account := fmt.Sprintf("n%d-%d-%d", round, worker, n)
		body := fmt.Sprintf(`{"id":"gym","sku":"GYM","amount":3900,"currency":"GBP","payment_day":15,"email":"%s@example.com"}`, account)
		return fmt.Sprintf("POST /v1/accounts/%s/subscriptions%s%s\r\nIdempotency-Key: join/%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			account, head, key, account, len(body), body)
	}
}

// reads returns requests for the paid period of a random one of the subscriptions.
func reads(key string, subscriptions int) func(worker, n int) string {
	return func(int, int) string {
		return fmt.Sprintf("GET /v1/accounts/a%d/subscriptions/gym/periods/0%s%s\r\n\r\n", rand.IntN(subscriptions), head, key)
	}
}
