package main

import "testing"

func TestBenchWebhooks_Refuses(t *testing.T) {
	c := newCLI(t)
	for says, args := range map[string][]string{
		"--seconds 121: want at most 120": {"--seconds", "121"},
		"at least 1000 subscriptions":     {"--subscriptions", "10"},
		"1 worker":                        {"--workers", "0"},
		"takes no argument":               {"all"},
	} {
		r := c.run(append([]string{"bench", "webhooks", "--dir", t.TempDir()}, args...)...)
		equal(t, says, r.code, exitUsage)
		contains(t, r.errors, says)
	}
}
