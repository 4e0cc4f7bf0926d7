package storeurl

import (
	"net/url"
	"strings"
)

// A Place is what a store URL says.
type Place struct {
	Scheme string // pebble, mem or dynamodb
	Folder string // of pebble:

	// Of dynamodb:, each "" when the URL does not say it.
	Prefix         string // begins the names of all tables
	RecurringTable string // name of the recurring-payments table, when it has one of its own
	Region         string // else the SDK's default chain decides
	Endpoint       string // base URL of the service, such as DynamoDB Local's
}

const forms = "want pebble:DIR, dynamodb:?region=REGION or mem:"

// Parse reads a store URL. Its errors are ErrURL.
func Parse(text string) (Place, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case text == "":
		return Place{}, urlError("no store named: %s", forms)
	case !ok:
		return Place{}, urlError("store %q has no scheme: %s (did you mean %q?)", text, forms, "pebble:"+text)
	case scheme == "mem" && rest != "":
		return Place{}, urlError("store %q: mem: takes nothing after the colon", text)
	case scheme == "pebble" && rest == "":
		return Place{}, urlError("store %q names no folder: %s", text, forms)
	case scheme == "mem", scheme == "pebble":
		return Place{Scheme: scheme, Folder: rest}, nil
	case scheme == "dynamodb":
		return parseDynamo(text, rest)
	}
	return Place{}, urlError("unknown store %q: %s", text, forms)
}

// Shared reports whether several processes may work on the store at once.
func (p Place) Shared() bool { return p.Scheme == "dynamodb" }

const dynamoParameters = "endpoint, prefix, recurring_table, region"

func parseDynamo(text, rest string) (Place, error) {
	rest = strings.TrimPrefix(rest, "//")
	p := Place{Scheme: "dynamodb"}
	if rest == "" {
		return p, nil
	}
	query, ok := strings.CutPrefix(rest, "?")
	values, err := url.ParseQuery(query)
	if !ok || err != nil {
		return Place{}, urlError("store %q: want dynamodb:?NAME=VALUE&..., with the names %s", text, dynamoParameters)
	}
	for name, list := range values {
		if len(list) > 1 || list[0] == "" {
			return Place{}, urlError("store %q: parameter %s wants one value", text, name)
		}
		switch name {
		case "prefix":
			p.Prefix = list[0]
		case "recurring_table":
			p.RecurringTable = list[0]
		case "region":
			p.Region = list[0]
		case "endpoint":
			p.Endpoint = list[0]
		default:
			return Place{}, urlError("store %q: unknown parameter %q; known: %s", text, name, dynamoParameters)
		}
	}
	return p, p.check(text)
}

// check refuses what DynamoDB could not have as a name, and an endpoint that is none.
func (p Place) check(text string) error {
	named := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r)
	}
	for _, n := range [...]struct {
		parameter, value string
		shortest         int
	}{{"prefix", p.Prefix, 0}, {"recurring_table", p.RecurringTable, 3}} {
		if strings.ContainsFunc(n.value, func(r rune) bool { return !named(r) }) {
			return urlError("store %q: %s takes letters, digits and _ . - alone", text, n.parameter)
		}
		if len(n.value) > 200 || (n.value != "" && len(n.value) < n.shortest) {
			return urlError("store %q: %s is too short or too long for DynamoDB", text, n.parameter)
		}
	}
	if p.Endpoint == "" {
		return nil
	}
	if u, err := url.Parse(p.Endpoint); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return urlError("store %q: endpoint: want http://HOST:PORT or https://HOST", text)
	}
	return nil
}
