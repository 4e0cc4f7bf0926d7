package book

import (
	"os"
	"strings"
	"testing"
)

// rejectedFile returns what FILE.rejected holds after a text was read.
func rejectedFile(t *testing.T, f Format, text string) string {
	t.Helper()
	var b strings.Builder
	w := NewRejectedWriter(&b, f)
	for _, bad := range Read(strings.NewReader(text), f, Options{PaymentMethod: "pm"}) {
		if bad != nil {
			if err := w.Write(bad); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// golden compares with a file of testdata, and writes it when UPDATE_GOLDEN is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = "testdata/" + name
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestRejected_CSV(t *testing.T) {
	golden(t, "rejected.csv", rejectedFile(t, CSV, byteOrderMark+header+",address\r\n"+
		"1,a@b.c,s1,k,1,USD,1,pm,\r\n"+
		"2,nobody,s1,k,0,USD,1,pm,\"a, b\"\r\n"+
		"3,a@b.c,s1,k,1,USD,1,4242 4242 4242 4242,\r\n"+
		"4,a@b.c,s1,k,1,USD,1\r\n"+
		"5,a@b.c,s\"1,k,1,USD,1,pm,\r\n"+
		"6,a@b.c,s1,k,1,USD,1,pm,\"two\r\nlines\"\r\n"))
}

func TestRejected_JSONLines(t *testing.T) {
	golden(t, "rejected.jsonl", rejectedFile(t, JSONLines, goodLine+"\n"+
		set("amount", "0")+"\n{}\n"+set("account", "4242424242424242")+"\n"+set("payment_method", `"\u0034242424242424242"`)+
		"\nwhat 4242424242424242\n"))
}

func TestRejected_WorkbenchNeverShowsTheCard(t *testing.T) {
	text := rejectedFile(t, Workbench, modelOf(strings.Replace(goodItem, "12.99", "free", 1)))
	golden(t, "rejected_model.jsonl", text)
	if strings.Contains(text, "4242") || strings.Contains(text, "default-card") {
		t.Error("the card is shown")
	}
}

func TestRejected_FatalHasNoRow(t *testing.T) {
	if got := rejectedFile(t, CSV, "account\n1\n"); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestRejected_CanBeCorrectedAndImported corrects the rows in place.
func TestRejected_CanBeCorrectedAndImported(t *testing.T) {
	for f, text := range map[Format]string{
		CSV:       header + "\n1,a@b.c,s1,k,BAD,USD,1,pm\n1,\"a@b.c\",s2,k,BAD,USD,1,pm\n1,a@b.c,s3,k,1,USD,1,pm\n",
		JSONLines: strings.Repeat(set("amount", `"BAD"`)+"\n", 2),
	} {
		again := rejectedFile(t, f, rejectedFile(t, f, text)) // also when it is rejected twice
		_, got := readAll(t, f, again)
		if len(got) < 2 {
			t.Errorf("%v: the rejected rows are good: %q", f, got)
		}
		again = strings.ReplaceAll(again, `"amount":"BAD"`, `"amount":"1"`)
		again = strings.Replace(strings.ReplaceAll(again, ",k,BAD,", ",k,1,"), `"subscription":"s1"`, `"subscription":"s2"`,
			1)
		records, got := readAll(t, f, again)
		rejects(t, got)
		if len(records) != 2 {
			t.Errorf("%v: %d rows after correction, want 2", f, len(records))
		}
	}
}

// TestRejected_MaskIsNoToken: a card number that was masked is not accepted as something
// else when the file is imported as it is.
func TestRejected_MaskIsNoToken(t *testing.T) {
	for _, card := range []string{"4242424242424242", "4242 4242 4242 4242", "3056 930902 5904"} {
		text := header + ",address\n1,a@b.c,s1,k,1,USD,1,pm," + card + "\n"
		_, got := readAll(t, CSV, text)
		rejects(t, got, "2 address: looks like a card number")
		_, got = readAll(t, CSV, rejectedFile(t, CSV, text))
		rejects(t, got, "2 address: contains a masked card number")
	}
}
