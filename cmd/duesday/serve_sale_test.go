package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestServe_SaleBeside: serve fulfils each sale of a command beside it at once, although no webhook
// arrives. By its ticks, so many sales one after the other would take three minutes.
func TestServe_SaleBeside(t *testing.T) {
	c := newServeCLI(t)
	c.serveBy(time.Now, "--on-fulfil", c.job(), "--on-unsubscribe", c.job(), "--no-poll")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	deadline := time.Now().Add(90 * time.Second)
	for n := range 20 {
		sold := c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "product", "--key", fmt.Sprint(n),
			"--amount", "12.99", "--currency", "USD", "--email", "ada@example.com", "--payment-method", "pm_card_visa")
		equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + sold["purchase"].(map[string]any)["id"].(string): 1})
		if time.Now().After(deadline) {
			t.Fatalf("%d of 20 sales were fulfilled in 90 seconds", n+1)
		}
	}
}

// TestReadme_Tracking plays the README's sale beside serve. Its sleep is a wait for the fulfilment here.
func TestReadme_Tracking(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(text), "In the third, sell something:\n\n```sh\n")
	script, _, ok := strings.Cut(strings.ReplaceAll(script, "\\\n", ""), "```")
	set := regexp.MustCompile(`SHOP=(\S+)\n`).FindStringSubmatch(script)
	if !ok || set == nil {
		t.Fatal("the README has no sale")
	}
	c := newServeCLI(t)
	c.serve("--on-fulfil", c.job(), "--no-poll")
	list := ""
	for line := range strings.Lines(strings.ReplaceAll(script, "$SHOP", set[1])) {
		switch words := strings.Fields(line); {
		case strings.HasPrefix(line, "duesday "):
			list = c.must(words[1:]...)
		case strings.HasPrefix(line, "sleep "):
			for job := range c.await(1) {
				c.until("the fulfilment is noted", func() bool {
					_, purchase, _ := strings.Cut(job, " ")
					return c.object(exitDone, "purchase", "show", purchase)["purchase"].(map[string]any)["fulfilled"] == true
				})
			}
		}
	}
	if !regexp.MustCompile(`(?m)^PURCHASE .* FULFILLED .*\n\S+ .* yes `).MatchString(list) {
		t.Errorf("the list shows no fulfilled purchase:\n%s", list)
	}
}
