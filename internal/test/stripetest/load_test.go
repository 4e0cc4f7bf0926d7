package stripetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	spec := Load(t)
	if got, want := spec.version, "2026-08-26.dahlia"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if Load(t) != spec {
		t.Error("it is read twice")
	}
}

// TestWhoHasNoJudge: a test is skipped where the judge cannot be had, but not where that
// would go unnoticed; and a judge that is broken is no reason to skip.
func TestWhoHasNoJudge(t *testing.T) {
	missing := fmt.Errorf("%w: no network", errMissing)
	for _, c := range []struct {
		ci   string
		err  error
		want string
	}{
		{"", nil, ""},
		{"", missing, "skipped: SKIPPED, NOT TESTED"},
		{"true", missing, "fatal: stripe-mock is not there: no network (`go mod download"},
		{"", errors.New("broken"), "fatal: broken"},
	} {
		t.Setenv("CI", c.ci)
		r := &recorder{TB: t}
		orSkip(r, c.err)
		if got := strings.Join(r.take(), "\n"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("CI=%q, %v: got %q, want %q", c.ci, c.err, got, c.want)
		}
	}
	t.Setenv("PATH", "")
	if _, err := goCommand("version"); !errors.Is(err, errMissing) {
		t.Errorf("without a go command: %v", err)
	}
}

func TestParseRefusesWhatItDoesNotUnderstand(t *testing.T) {
	const (
		events = `"/v1/webhook_endpoints":{"post":{"requestBody":{"content":{"f":{"schema":{"type":"object",` +
			`"properties":{"enabled_events":{"type":"array","items":{"type":"string","enum":["a.b"]}}}}}}}}}`
		right = `{"paths":{` + events + `},"components":{"schemas":{` +
			`"error":{"type":"object"},"event":{"type":"object"},"x":%s}}}`
	)
	for schema, want := range map[string]string{
		`{"type":"string"}`: "",
		`{"type":"array","items":{"$ref":"#/components/schemas/x"}}`: "",
		`{"type":"date"}`:                        `x: type "date" is not one`,
		`{}`:                                     `x: type "" is not one`,
		`{"$ref":"#/components/schemas/y"}`:      "nothing is at #/components/schemas/y",
		`{"type":"string","pattern":"("}`:        "missing closing",
		`{"type":"array"}`:                       "x: a schema is missing",
		`{"anyOf":[{"type":"date"}]}`:            `x: type "date"`,
		`{"type":"object","properties":{"a":1}}`: "the specification: json",
		`{"type":"object","properties":{"a":{"type":"date"}}}`:  `x.a: type "date"`,
		`{"type":"object","additionalProperties":{"type":"?"}}`: `x: type "?"`,
	} {
		_, err := parse(fmt.Appendf(nil, right, schema))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", schema, err, want)
		}
	}
	for text, want := range map[string]string{
		`{}`: "it has no schema error",
		`{"components":{"schemas":{"error":{"type":"object"},"event":{"type":"object"}}}}`: "no list of the events",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for key, want := range map[string][]string{
		"a": {"a"}, "a[b]": {"a", "b"}, "a[]": {"a", ""}, "a[0][b][]": {"a", "0", "b", ""},
		"": nil, "[a]": nil, "a]": nil, "a[": nil, "a[b": nil, "a[b]c": nil, "a[b]c]": nil, "a[[b]]": nil, "a[b][": nil,
	} {
		got, ok := split(key)
		if ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("%s: got %q %t, want %q", key, got, ok, want)
		}
	}
}
