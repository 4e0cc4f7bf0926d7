package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/test/consumption"
)

func (b *benchmark) pagesCommand() *cobra.Command {
	var requests int
	c := &cobra.Command{
		Use:   "pages",
		Short: "Ask duesday serve for each page over HTTP, on a large book",
		Long: `Imports a book of which 5 % are due, a fifth of these with five earlier periods. duesday serve
charges them, sends mail and messages, and makes the pass for the outlook. Then one session asks
for each page, one request after another, each time for another account with six receipts. If
--dir has the book of an earlier call, it is taken. The book stays there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.pages(cmd.Context(), requests) },
	}
	c.Flags().StringVar(&b.product, "duesday", "", "`FILE` of the product to measure (default: built from the module of the working folder)")
	c.Flags().IntVar(&requests, "requests", 300, "`N` requests for each page")
	return c
}

// pages prints how long each page takes.
func (b *benchmark) pages(ctx context.Context, requests int) (err error) {
	b.folder = filepath.Join(cmp.Or(b.folder, os.TempDir()), "duesday-bench-pages")
	_, missing := os.Stat(b.folder)
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	if err = cmp.Or(err, os.MkdirAll(b.folder, 0o700), b.build(ctx)); err != nil {
		return err
	}
	go func() { _ = http.Serve(sink, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }() // accepts messages, until the end
	if missing != nil {
		if err := b.makePagesBook(ctx, "http://"+sink.Addr().String()); err != nil {
			return err
		}
	}
	s := &pageServer{Cmd: exec.CommandContext(ctx, b.product, "serve", "--json", "--no-poll", "--allow-private", "--listen=", "--api", "127.0.0.1:0",
		"--pages", "127.0.0.1:0", "--customer", "127.0.0.1:0", "--cache", fmt.Sprint(b.cacheMiB))}
	s.Dir, s.Stderr = b.folder, b.stderr
	s.Cancel = func() error { return s.Process.Signal(os.Interrupt) }
	defer func() {
		if s.Process != nil {
			err = errors.Join(err, s.Cancel(), s.Wait())
		}
	}()
	if err := b.enter(ctx, s); err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "%-25s %9s %9s %9s\n", "page", "p50, ms", "p95, ms", "max, ms")
	for _, p := range s.list(b.subscriptions) {
		took := make([]time.Duration, requests)
		for i := range requests {
			address, err := p.address(ctx, i)
			start := time.Now()
			if err = cmp.Or(err, s.ask(ctx, address, "", nil)); err != nil {
				return err
			}
			took[i] = time.Since(start)
		}
		slices.Sort(took)
		ms := func(percent int) float64 { return bench.Percentile(took, percent).Seconds() * 1000 }
		fmt.Fprintf(b.stdout, "%-25s %9.1f %9.1f %9.1f\n", p.name, ms(50), ms(95), ms(100))
	}
	return nil
}

// makePagesBook imports a book, and sets what its day needs.
func (b *benchmark) makePagesBook(ctx context.Context, sink string) error {
	file, due := filepath.Join(b.folder, "book.csv"), time.Now().UTC()
	due = due.AddDate(0, 0, min(28-due.Day(), 0))
	if err := writeBook(file, b.subscriptions, func(i int) (day int, date string) {
		if i%100 < 5 { // due, a fifth of them for the sixth time
			return due.Day(), due.AddDate(0, -5*max(1-i%100, 0), 0).Format(time.DateOnly)
		}
		return i%28 + 1, ""
	}); err != nil {
		return err
	}
	b.note("importing %d subscriptions", b.subscriptions)
	for _, args := range [][]string{{"import", file, "--overdue", "charge"}, {"endpoint", "create", sink, "--types", "period.paid"},
		{"settings", "set", "catch-up=6", "daily=00:00"}} {
		if _, err := b.duesday(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// A pageServer is duesday serve, and a client with a session.
type pageServer struct {
	*exec.Cmd
	base struct {
		Pages     string `json:"pages_base"`
		API       string `json:"api_base"`
		Customers string `json:"customer_base"`
	}
	key    struct{ Key string }
	client http.Client
}

// enter starts the server, waits until the day is done, and signs in.
func (b *benchmark) enter(ctx context.Context, s *pageServer) error {
	text, err := b.duesday(ctx, "key", "create", "bench-"+rand.Text()[:8], "--scope", "admin", "--expires", "1d")
	if err == nil {
		err = json.Unmarshal(text, &s.key)
	}
	out, wrong := s.StdoutPipe()
	if err = cmp.Or(err, wrong); err == nil {
		err = s.Start()
	}
	for lines := json.NewDecoder(out); s.base.Pages == "" && err == nil; { // the first line may be a warning
		err = lines.Decode(&s.base)
	}
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	_, err = b.duesday(ctx, "settings", "set", "portal=on", "seller=Gym", "seller-address=Birmingham", "public-url="+s.base.Customers)
	b.note("waiting until the day is done and the outlook is stored")
	for day := new(struct{ Outlook any }); day.Outlook == nil && err == nil; err = cmp.Or(err, clock.Wait(ctx, time.Second)) {
		err = s.ask(ctx, s.base.API+"/v1/overview", "", day)
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.client.Jar, _ = cookiejar.New(nil) // cannot fail without options
	return cmp.Or(err, s.ask(ctx, s.base.Pages+"/sign-in", "key="+s.key.Key, nil))
}

// ask gets a page or, with a body, posts a form. Into an object, it gets or posts the API's JSON.
func (s *pageServer) ask(ctx context.Context, address, body string, into any) error {
	method, want, kind := http.MethodGet, http.StatusOK, "application/json"
	if body != "" {
		method = http.MethodPost
	}
	if body != "" && into == nil {
		want, kind = http.StatusSeeOther, "application/x-www-form-urlencoded"
	}
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": kind, "Idempotency-Key": rand.Text(), "Authorization": "Bearer " + s.key.Key} {
		r.Header.Set(name, value)
	}
	to, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = to.Body.Close() }()
	text, err := io.ReadAll(to.Body)
	if err == nil && to.StatusCode != want {
		err = fmt.Errorf("%s %s: %s", method, address, to.Status)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// A pageOf is a page, with the address of each request.
type pageOf struct {
	name    string
	address func(ctx context.Context, i int) (string, error)
}

// list returns the pages of a book of n subscriptions.
func (s *pageServer) list(n int) (all []pageOf) {
	account := func(i int) int { return consumption.Scatter(i * 7900 % n / 100 * 100) }
	for _, p := range [][2]string{{"today", "/"}, {"account", "/accounts/A"}, {"subscription", "/accounts/A/subscriptions/S"},
		{"period", "/accounts/A/subscriptions/S/periods/1"}, {"accounts", "/accounts"}, {"accounts, by email", "/accounts?email=E"},
		{"subscriptions", "/subscriptions"}, {"subscriptions, active", "/subscriptions?status=active"}, {"subscriptions, of a plan", "/subscriptions?sku=P"},
		{"runs", "/runs"}, {"deliveries", "/deliveries"}, {"deliveries, failed", "/deliveries?state=failed"}, {"mails", "/mails"},
		{"mails, of an account", "/mails?account=A"}, {"mails, given up", "/mails?state=given_up"}, {"search: account", "/search?q=A"},
		{"search: subscription", "/search?q=A%2FS"}, {"search: email", "/search?q=E"}, {"search: plan", "/search?q=P"},
		{"search: receipt", "/search?q=R"}, {"search: customer", "/search?q=cus_A"}, {"installation", "/installation"}} {
		all = append(all, pageOf{p[0], func(_ context.Context, i int) (string, error) {
			id, year := account(i), time.Now().UTC().Year()
			return s.base.Pages + strings.NewReplacer("A", fmt.Sprintf("acct_%010d", id), "S", fmt.Sprintf("sub_%010d", id), "P", fmt.Sprintf("plan-%03d", i%200),
				"E", fmt.Sprintf("customer.%d@example.com", id), "R", fmt.Sprintf("R-%d-%06d", year, i+1)).Replace(p[1]), nil
		}})
	}
	return append(all, pageOf{"run", func(ctx context.Context, _ int) (string, error) {
		var runs struct{ Data []struct{ ID string } }
		err := s.ask(ctx, s.base.API+"/v1/runs?kind=payments&limit=1", "", &runs)
		return s.base.Pages + "/runs/" + strings.Trim(fmt.Sprint(runs.Data), "[{}]"), err
	}}, pageOf{"the customer's page", func(ctx context.Context, i int) (string, error) {
		var link struct{ URL string }
		err := s.ask(ctx, fmt.Sprintf("%s/v1/accounts/acct_%010d/portal_links", s.base.API, account(i)), "{}", &link)
		if err == nil {
			err = s.ask(ctx, link.URL, "go=", nil)
		}
		return s.base.Customers + "/account", err
	}})
}
