package storeurl

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestParse_DynamoDB(t *testing.T) {
	for text, want := range map[string]Place{
		"dynamodb:":   {},
		"dynamodb://": {},
		"dynamodb:?prefix=live-&recurring_table=Re.Pay_1&region=eu-west-1": {Prefix: "live-",
			RecurringTable: "Re.Pay_1", Region: "eu-west-1"},
		"dynamodb://?endpoint=http://127.0.0.1:8000/":                                {Endpoint: "http://127.0.0.1:8000"},
		"dynamodb:?endpoint=https%3A%2F%2Fvpce-1_a.dynamodb.eu-west-1.amazonaws.com": {Endpoint: "https://vpce-1_a.dynamodb.eu-west-1.amazonaws.com"},
		"dynamodb:?endpoint=http://[::1]:8000":                                       {Endpoint: "http://[::1]:8000"},
		"dynamodb:?endpoint=HTTP://localhost":                                        {Endpoint: "http://localhost"},
	} {
		want.Scheme = "dynamodb"
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// TestParse_RepeatsNoPassword: wherever a password may stand by mistake, the URL is refused,
// and the error is of one line and does not have it.
func TestParse_RepeatsNoPassword(t *testing.T) {
	for _, text := range []string{
		"https://bob:s3cret@example.com", "bob:s3cret@example.com", "s3cret@example.com:8000", "mem://bob:s3cret@x",
		"s3cret\n:x",
		"dynamodb://bob:s3cret@example.com", "dynamodb:bob:s3cret", "dynamodb:?http://bob:s3cret@example.com",
		"dynamodb:?x=s3cret", "dynamodb:?s3cret@x=1",
		"dynamodb:?region=s3cret@x", "dynamodb:?region=a%0As3cret", "dynamodb:?prefix=s3cret@x",
		"dynamodb:?recurring_table=s3cret%20x", "dynamodb:?%zz=s3cret",
		"dynamodb:?endpoint=s3cret&endpoint=s3cret", "dynamodb:?region=" + strings.Repeat("s3cret", 10),
	} {
		refused(t, text)
	}
	for _, endpoint := range []string{
		"ftp://bob:s3cret@example.com", "http://bob:s3cret@example.com", "https://s3cret@example.com",
		"http://example.com?key=s3cret", "http://example.com?",
		"http://example.com#s3cret", "http://example.com#", "http://example.com/s3cret", "http://example.com//",
		"http://s3cret x", "http://s3cret\u00a0x",
		"http://s3cret\x1b[2J", "http://s3cret\u0085", "http://s3cret\nx", "http://[::1%25s3cret]:1", "http://s3cret:x",
		"http://s3cret:0", "http://s3cret:65536",
		"s3cret", "//s3cret", "http:s3cret", "http://", "http://:8000", "http://bob:s3cret%zz@example.com",
	} {
		refused(t, "dynamodb:?endpoint="+url.QueryEscape(endpoint))
		refused(t, "dynamodb:?endpoint="+endpoint)
	}
}

func refused(t *testing.T, text string) {
	t.Helper()
	place, err := Parse(text)
	if !errors.Is(err, ErrURL) || place != (Place{}) {
		t.Errorf("Parse(%q) = %+v, %v", text, place, err)
		return
	}
	if strings.Contains(err.Error(), "s3cret") || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("Parse(%q) says %q", text, err)
	}
}
