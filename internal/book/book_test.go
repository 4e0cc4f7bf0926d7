package book

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/secret"
)

const header = "account,email,subscription,sku,amount,currency,payment_day,payment_method"

// fullHeader has the columns of a subscription without those of its account and its product.
var fullHeader = strings.Join(Columns()[:trialDays], ",")

// readAll returns what a text holds: the good rows, and the rejections as
// "line column: reason", with a ! before those that are fatal.
func readAll(t testing.TB, f Format, text string) ([]Record, []string) {
	t.Helper()
	var records []Record
	var rejected []string
	for r, bad := range Read(strings.NewReader(text), f, Options{PaymentMethod: "pm_card_visa"}) {
		if bad == nil {
			if r.Subscription != nil {
				if err := r.Subscription.Check(); err != nil {
					t.Errorf("line %d was accepted and fails Check: %v", r.Line, err)
				}
			}
			records = append(records, r)
			continue
		}
		for _, shown := range []string{bad.Column, bad.Reason, bad.Raw} {
			if secret.HasCardNumber(shown) {
				t.Errorf("line %d shows a card number: %s", bad.Line, shown)
			}
		}
		mark := ""
		if bad.Fatal {
			mark = "!"
		}
		rejected = append(rejected, fmt.Sprintf("%s%d %s: %s", mark, bad.Line, bad.Column, bad.Reason))
	}
	return records, rejected
}

// rejects checks that the rejections are those wanted, each by its beginning and a part of
// its reason, written "2 amount: … decimals".
func rejects(t *testing.T, got []string, want ...string) {
	t.Helper()
	bad := len(got) != len(want)
	for i := range min(len(got), len(want)) {
		begin, part, _ := strings.Cut(want[i], "…")
		bad = bad || !strings.HasPrefix(got[i], begin) || !strings.Contains(got[i], strings.TrimSpace(part))
	}
	if bad {
		t.Errorf("got rejections\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestDetect(t *testing.T) {
	model, err := os.ReadFile("testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text string
		want       Format
	}{
		{"a.csv", header + "\n", CSV},
		{"a.csv", "", CSV},
		{"a.jsonl", "", JSONLines},
		{"a.NDJSON", "what", JSONLines},
		{"a.csv", `{"account":"1"}`, JSONLines},
		{"", byteOrderMark + " \n{\"account\":\"1\"}", JSONLines},
		{"a.json", string(model), Workbench},
		{"a.csv", byteOrderMark + string(model), Workbench},
		{"a.json", string(model[:200]), Workbench},
		{"a.json", `{"DataModel":[`, Workbench},
		{"a.json", `{"x":{"DataModel":1},"y":[["DataModel"]],"DataModel":[`, Workbench},
		{"a.json", `{"address":"DataModel"}` + "\n" + `{"DataModel":1}`, JSONLines},
		{"a.json", `{"x":{"DataModel":1}}`, JSONLines},
		{"a.json", `{"x":`, JSONLines},
		{"a.csv", `[{"account":"1"}]`, JSONLines},
		{"a.csv", sampleHeader + "\n", Samples},
		{"a.csv", byteOrderMark + "\r\nSK,\"PK\" \r\n", Samples},
		{"a.csv", "PK,account\nPK,SK\n", CSV},
	} {
		if got := Detect([]byte(tt.text), tt.name); got != tt.want {
			t.Errorf("Detect(%.40q, %q) = %v, want %v", tt.text, tt.name, got, tt.want)
		}
	}
}

func TestRead_UnreadableFiles(t *testing.T) {
	for _, f := range []Format{CSV, JSONLines, Workbench, Samples} {
		_, got := readAll(t, f, "")
		rejects(t, got, "!1 : the file is empty")
		_, got = readAll(t, f, byteOrderMark)
		rejects(t, got, "!1 : the file is empty")
		_, got = readAll(t, f, "\xFF\xFEa\x00")
		rejects(t, got, "!1 : the file is UTF-16")
	}
	_, got := readAll(t, 0, "x")
	rejects(t, got, "!1 : unknown format")
}

// brokenFile fails after its text.
type brokenFile struct{ r *strings.Reader }

func (b brokenFile) Read(p []byte) (int, error) {
	if b.r.Len() == 0 {
		return 0, os.ErrClosed
	}
	return b.r.Read(p)
}

func TestRead_FailureOfTheFileIsFatal(t *testing.T) {
	for f, text := range map[Format]string{CSV: header +
		"\n1,a@b.c,s,k,1,USD,1,pm\n", JSONLines: "\n", Workbench: `{"DataModel":[`, Samples: sampleHeader + "\n"} {
		fatal := false
		for _, bad := range Read(brokenFile{strings.NewReader(text)}, f, Options{}) {
			fatal = bad != nil && bad.Fatal && strings.Contains(bad.Reason, "closed")
		}
		if !fatal {
			t.Errorf("%v: the failure was not the last thing yielded", f)
		}
	}
}

func TestRead_StopsWhenTheCallerStops(t *testing.T) {
	model, err := os.ReadFile("testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	for f, text := range map[Format]string{
		CSV:       header + "\n1,a@b.c,s,k,1,USD,1,pm\n1,a@b.c,s2,k,1,USD,1,pm\n",
		JSONLines: "{}\n{}\n",
		Workbench: string(model),
		Samples:   sampleHeader + "\n" + goodSample + "\n" + goodSample + "\n",
	} {
		n := 0
		for range Read(strings.NewReader(text), f, Options{PaymentMethod: "pm"}) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%v: %d yields, want 1", f, n)
		}
	}
}

func TestRejection_JSON(t *testing.T) {
	b, err := json.Marshal(&Rejection{Line: 2, Column: "amount", Reason: "r", Raw: "raw", Fatal: true})
	if want := `{"line":2,"column":"amount","reason":"r"}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
}
