package main

import (
	"strings"
	"testing"
)

func TestCapacity(t *testing.T) {
	c := newCLI(t)
	out := c.must("capacity", "--subscriptions", "1000000", "--peak-share", "20%")
	for _, want := range []string{"200,000", "1,000,000 subscriptions × 20 %", "BIND 1 + SETTLE 9 + MAIL 10.21",
		"4,042,018", "1,772,705", "2.22", "shards per date", "30,210,540", "dollars a month, on demand", "26.57"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	o := c.json(exitDone, "capacity", "--subscriptions", "1000000", "--peak-share", "0.2").(map[string]any)
	if o["due_periods"] != 200_000.0 || o["shards_per_date"] != 1.0 || o["fits"] != true {
		t.Errorf("%v", o)
	}
	o = c.json(exitDone, "capacity", "--subscriptions", "90000000", "--peak-share", "0.5", "--hours", "5", "--charge-rate",
		"3000").(map[string]any)
	if o["charges_per_second"] != 2500.0 || o["shards_per_date"] != 3.0 || o["fits"] != true {
		t.Errorf("%v", o)
	}
	out = c.must("capacity", "--subscriptions", "90000000", "--peak-share", "50%")
	if want := "must allow 521 charges per second, but allows 25"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

func TestCapacity_Nonsense(t *testing.T) {
	c := newCLI(t)
	for args, want := range map[string]string{
		"--peak-share 0.2":                                                     "--subscriptions is missing",
		"--subscriptions 10":                                                   "--peak-share is missing",
		"--subscriptions -5 --peak-share 0.2":                                  "--subscriptions",
		"--subscriptions many --peak-share 0.2":                                "--subscriptions",
		"--subscriptions 10 --peak-share 20":                                   "0.2 or 20%",
		"--subscriptions 10 --peak-share 120%":                                 "0.2 or 20%",
		"--subscriptions 10 --peak-share 0":                                    "0.2 or 20%",
		"--subscriptions 10 --peak-share NaN":                                  "0.2 or 20%",
		"--subscriptions 10 --peak-share some":                                 "0.2 or 20%",
		"--subscriptions 10 --peak-share 0.01":                                 "none of 10",
		"--subscriptions 10 --peak-share 0.5 --hours 0":                        "--hours",
		"--subscriptions 10 --peak-share 0.5 --hours 25":                       "--hours",
		"--subscriptions 10 --peak-share 0.5 --charge-rate 0":                  "--charge-rate",
		"--subscriptions 10 --peak-share 0.5 --charge-rate NaN":                "--charge-rate",
		"--subscriptions 10 --peak-share 0.5 --charge-rate Inf":                "--charge-rate",
		"--subscriptions 10 --peak-share 0.5 --charge-rate 25 --item-bytes -3": "--item-bytes",
	} {
		if r := c.run(append([]string{"capacity"}, strings.Fields(args)...)...); r.code != exitUsage ||
			!strings.Contains(r.errors, want) || r.out != "" {
			t.Errorf("capacity %s: %+v; want wrong usage that says %q", args, r, want)
		}
	}
}
