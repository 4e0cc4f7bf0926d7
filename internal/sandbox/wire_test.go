package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
)

func TestParseServer(t *testing.T) {
	for text, want := range map[string]string{
		"sandbox:http://127.0.0.1:12121":  "http://127.0.0.1:12121",
		"sandbox:HTTP://ledger.test:80/":  "http://ledger.test:80",
		"sandbox:http://[::1]:12121":      "http://[::1]:12121",
		"sandbox:":                        "",
		"sandbox:http":                    "",
		"sandbox:http.jsonl?seed=1":       "",
		"sandbox:./http://127.0.0.1:1212": "",
	} {
		base, ok, err := ParseServer(text)
		if base != want || ok != (want != "") || err != nil {
			t.Errorf("%s: %q, %v, %v; want %q", text, base, ok, err, want)
		}
	}
}

func TestParseServer_Wrong(t *testing.T) {
	for text, want := range map[string]string{
		"sandbox:http://":                       "more or less",
		"sandbox:http://ledger.test":            "more or less",
		"sandbox:http://:12121":                 "more or less",
		"sandbox:http://h:0":                    "more or less",
		"sandbox:http://h:65536":                "more or less",
		"sandbox:http://h:1/v1":                 "more or less",
		"sandbox:http://h:1#x":                  "more or less",
		"sandbox:http://h:port":                 "no address",
		"sandbox:https://h:443":                 "by http",
		"sandbox:http://me:hunter2@h:1":         "a user and a password",
		"sandbox:http://me:hunter2@h:1:1":       "no address",
		"sandbox:http://h:1?latency=200ms":      "duesday sandbox --processor 'sandbox:FILE?",
		"sandbox:http://127.0.0.1:12121?lost=1": "parameters belong to the server",
	} {
		base, ok, err := ParseServer(text)
		if base != "" || !ok || err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "want sandbox:http://HOST:PORT") {
			t.Errorf("%s: %q, %v, %v; want %q in it", text, base, ok, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats the password", text)
		}
		if _, _, err := Parse(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Parse takes %s for a file: %v", text, err)
		}
	}
}

// Each error has one code, and comes back as itself alone.
func TestErrorForm(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range codes {
		form, status := formOfError(because(c.err))
		back := form.err()
		for _, other := range codes {
			if errors.Is(back, other.err) != (other.err == c.err) {
				t.Errorf("%v came back as %v", c.err, back)
			}
		}
		if back.Error() != because(c.err).Error() || seen[form.Code] || seen[http.StatusText(status)] {
			t.Errorf("%v: %+v, status %d, back as %v", c.err, form, status, back)
		}
		seen[form.Code], seen[http.StatusText(status)] = true, true
		if bare, _ := formOfError(c.err); bare.err() != c.err {
			t.Errorf("%v came back as %v", c.err, bare.err())
		}
	}
	form, _ := formOfError(errClosed)
	if err := form.err(); !errors.Is(err, billing.ErrUnknown) || !strings.Contains(err.Error(), errClosed.Error()) {
		t.Errorf("an error of nobody's came back as %v", err)
	}
}

func because(err error) error { return fmt.Errorf("%w: because", err) }

func drawOpen(t *rapid.T) billing.OpenRequest {
	text := rapid.OneOf(rapid.StringN(1, 100, maxKey), rapid.SampledFrom([]string{"k", "é<&>\u2028\x00", "pm_card_visa"}))
	number := rapid.IntRange(0, 1<<31-1)
	c, err := money.ParseCurrency(rapid.SampledFrom([]string{"EUR", "JPY", "KWD"}).Draw(t, "currency"))
	if err != nil {
		t.Fatal(err)
	}
	return billing.OpenRequest{Key: text.Draw(t, "key"), Method: text.Draw(t, "method"),
		Amount: money.New(rapid.Int64Min(1).Draw(t, "minor"), c),
		Tag: billing.Tag{Installation: text.Draw(t, "install"), Account: text.Draw(t, "account"),
			Subscription: text.Draw(t, "subscription"),
			SKU:          text.Draw(t, "sku"), Period: number.Draw(t, "period"), Generation: number.Draw(t, "generation")}}
}

// What a client sends is what the server is asked, to the last byte.
func TestForms_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawOpen(t)
		if err := checkOpen(r); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(formOfOpen(r))
		if err != nil || len(text) > maxBody {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		var form openForm
		if err := decodeForm(text, &form); err != nil {
			t.Fatal(err)
		}
		if back, err := form.request(); err != nil || back != r {
			t.Fatalf("%+v came as %+v, %v", r, back, err)
		}
		in := billing.Intent{Ref: r.Key, State: rapid.SampledFrom(states[:]).Draw(t, "state"), Tag: r.Tag, Amount: r.Amount,
			Latest: r.Method, Code: r.Tag.SKU, Hard: rapid.Bool().Draw(t, "hard"), Changed: newClock().Now()}
		if text, err = json.Marshal(recordOf(Entry{Intent: in})); err != nil {
			t.Fatal(err)
		}
		var back record
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if got, err := back.readIntent(); err != nil || got != in {
			t.Fatalf("%+v came as %+v, %v", in, got, err)
		}
	})
}

// FuzzForms: whatever the body is, a form is read whole or refused as invalid, and what was
// read is the same when it is sent on.
func FuzzForms(f *testing.F) {
	f.Add([]byte(`{"key":"k","install":"i","account":"1","subscription":"2","sku":"s","period":1,"generation":0,"amount":"12.99","currency":"EUR","method":"pm"}`))
	f.Add([]byte(`{"key":"k","ref":"pi","method":"pm","attempt":1}`))
	f.Add([]byte(`{"ref":"pi"} {}`))
	f.Add([]byte("{\"ref\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, form := range []any{new(openForm), new(confirmForm), new(cancelForm)} {
			if err := decodeForm(text, form); err != nil {
				if !errors.Is(err, billing.ErrInvalid) {
					t.Errorf("%q: %v", text, err)
				}
				continue
			}
			again, err := json.Marshal(form)
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(form).Elem()).Interface()
			if err := decodeForm(again, back); err != nil || !reflect.DeepEqual(form, back) {
				t.Errorf("%+v came back as %+v, %v", form, back, err)
			}
			if open, ok := form.(*openForm); ok {
				fuzzOpen(t, open)
			}
		}
	})
}

func fuzzOpen(t *testing.T, form *openForm) {
	r, err := form.request()
	if err != nil {
		if !errors.Is(err, billing.ErrInvalid) {
			t.Errorf("%+v: %v", form, err)
		}
		return
	}
	again := formOfOpen(r)
	if back, err := again.request(); err != nil || back != r {
		t.Errorf("%+v came back as %+v, %v", r, back, err)
	}
}
