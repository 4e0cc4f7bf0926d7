package storeurl

import (
	"net/url"
	"strconv"
	"strings"
)

// A Place is a parsed store URL.
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

// Parse reads a store URL. Its errors are ErrURL, and repeat no part of a URL that could be a
// password.
func Parse(text string) (Place, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case text == "":
		return Place{}, urlError("no store named: %s", forms)
	case !ok:
		return Place{}, urlError("store %q has no scheme: %s (did you mean %q?)", text, forms, "pebble:"+text)
	case scheme == "mem" && rest != "":
		return Place{}, urlError("store mem: takes nothing after the colon")
	case scheme == "pebble" && rest == "":
		return Place{}, urlError("store %q names no folder: %s", text, forms)
	case scheme == "mem", scheme == "pebble":
		return Place{Scheme: scheme, Folder: rest}, nil
	case scheme == "dynamodb":
		return parseDynamo(rest)
	case plain(scheme, ""):
		return Place{}, urlError("a store of scheme %q is not known: %s", scheme, forms)
	}
	return Place{}, urlError("a store of that scheme is not known: %s", forms)
}

// Shared reports whether several processes may work on the store at once.
func (p Place) Shared() bool { return p.Scheme == "dynamodb" }

const dynamoParameters = "endpoint, prefix, recurring_table, region"

func parseDynamo(rest string) (Place, error) {
	rest = strings.TrimPrefix(rest, "//")
	p := Place{Scheme: "dynamodb"}
	if rest == "" {
		return p, nil
	}
	query, ok := strings.CutPrefix(rest, "?")
	values, err := url.ParseQuery(query)
	if !ok || err != nil {
		return Place{}, urlError("store dynamodb: want dynamodb:?NAME=VALUE&..., with the names %s", dynamoParameters)
	}
	for name, list := range values {
		at, known := map[string]*string{"prefix": &p.Prefix, "recurring_table": &p.RecurringTable,
			"region": &p.Region, "endpoint": &p.Endpoint}[name]
		switch {
		case !known && plain(name, "_"):
			return Place{}, urlError("store dynamodb: unknown parameter %q; known: %s", name, dynamoParameters)
		case !known:
			return Place{}, urlError("store dynamodb: unknown parameter; known: %s", dynamoParameters)
		case len(list) > 1 || list[0] == "":
			return Place{}, urlError("store dynamodb: parameter %s wants one value", name)
		}
		*at = list[0]
	}
	if err := p.check(); err != nil {
		return Place{}, err
	}
	return p, nil
}

// check refuses names invalid in DynamoDB and invalid endpoints. It brings the endpoint into one
// form.
func (p *Place) check() (err error) {
	for _, n := range [...]struct {
		parameter, value string
		shortest         int
	}{{"prefix", p.Prefix, 0}, {"recurring_table", p.RecurringTable, 3}} {
		if !plain(n.value, "_.-") {
			return urlError("store dynamodb: %s takes letters, digits and _ . - alone", n.parameter)
		}
		if len(n.value) > 200 || (n.value != "" && len(n.value) < n.shortest) {
			return urlError("store dynamodb: %s is too short or too long for DynamoDB", n.parameter)
		}
	}
	if !plain(p.Region, "-") || len(p.Region) > 50 {
		return urlError("store dynamodb: region: want a region's code, such as eu-west-1")
	}
	p.Endpoint, err = base(p.Endpoint)
	return err
}

// base returns the base URL of an endpoint: scheme and host.
func base(endpoint string) (string, error) {
	if endpoint == "" {
		return "", nil
	}
	const want = "store dynamodb: endpoint: want http://HOST:PORT or https://HOST"
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https"):
		return "", urlError(want)
	case u.User != nil:
		return "", urlError("%s; a user and a password do not belong there: credentials come from the SDK's default chain",
			want)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(endpoint, "#") ||
		u.Path != "" && u.Path != "/":
		return "", urlError("%s, with nothing after it", want)
	case u.Hostname() == "" || !plain(u.Host, "_.-:[]"):
		return "", urlError("%s, in letters and digits", want)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", urlError("%s, and a port from 1 to 65535", want)
		}
	}
	return u.Scheme + "://" + u.Host, nil
}

// plain reports whether the text has only ASCII letters, digits and the characters in more.
func plain(text, more string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
	})
}
