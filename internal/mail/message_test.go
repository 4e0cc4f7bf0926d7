package mail

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/outbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

var created = time.Date(2023, 6, 28, 14, 15, 39, 247e6, time.FixedZone("", 2*60*60))

// sample returns an effect of the kind with all the data that kind has.
func sample(kind string) outbox.Effect {
	e := outbox.Effect{ID: kind + "-acme-sub1-3", Kind: kind, Due: created, Created: created, Data: map[string]string{
		outbox.DataAccount: "acme", outbox.DataEmail: "ada@example.com", outbox.DataSubscription: "sub1",
		outbox.DataSKU: "gold-monthly", outbox.DataPeriod: "3", outbox.DataDueDate: "2023-06-28",
		outbox.DataAmount: "12.99", outbox.DataCurrency: "USD", outbox.DataAmountText: "$12.99",
	}}
	switch kind {
	case outbox.KindReceipt:
		e.Data[outbox.DataProcessed] = "2023-06-28T12:15:39.247Z"
		e.Data[outbox.DataCharge], e.Data[outbox.DataReceipt] = "ch_1", "20230628-8F3K20QX-M4ZN7TRA"
	case outbox.KindDeclined:
		e.Data[outbox.DataRetryDate] = "2023-07-01"
		e.Data[outbox.DataCode] = "insufficient_funds"
	case outbox.KindFailed:
		e.Data[outbox.DataCode] = "expired_card"
	case outbox.KindActionRequired:
		e.Data[outbox.DataLink] = "https://pay.example.com/confirm/pi_1?step=2&back=%2Fhome"
	case outbox.KindRefund:
		e.Data[outbox.DataProcessed], e.Data[outbox.DataCharge] = "2023-06-28T12:15:39.247Z", "re_1"
	case outbox.KindPriceChange:
		e.Data[outbox.DataBefore] = "9.99"
	case outbox.KindCardExpires:
		e.Data[outbox.DataCard], e.Data[outbox.DataCardExpires] = "Visa ending in 4242", "2023-06"
	}
	return e
}

// withCard is a reminder that tells of the card; other kinds stay as they are.
func withCard(e outbox.Effect) outbox.Effect {
	if e.Kind == outbox.KindReminder {
		e.Data[outbox.DataCard], e.Data[outbox.DataCardExpires], e.Data[outbox.DataCardExpired] = "Visa ending in 4242",
			"2023-05", "true"
	}
	return e
}

// builtIn are the built-in templates, parsed once for all tests.
var builtIn = sync.OnceValues(func() (*Templates, error) { return NewTemplates("") })

// writer is one of a merchant.
func writer(t testing.TB) *Writer {
	t.Helper()
	return writerOf(t, settings.Settings{MerchantName: "Bücher & Söhne", PostalAddress: "12 Bridge Street, Birmingham",
		Sender: "Bücher & Söhne <billing@example.com>", ReplyTo: "help@example.com"})
}

func writerOf(t testing.TB, s settings.Settings) *Writer {
	t.Helper()
	templates, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(templates, s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func compose(e outbox.Effect, w *Writer) ([]byte, error) {
	m, err := w.Message(e)
	return m.Bytes, err
}

func TestCompose_Golden(t *testing.T) {
	tests := map[string]outbox.Effect{}
	for _, kind := range Kinds() {
		tests[kind] = sample(kind)
		bare := sample(kind)
		for _, key := range []string{outbox.DataAccount, outbox.DataSKU, outbox.DataDueDate, outbox.DataProcessed,
			outbox.DataCharge, outbox.DataRetryDate, outbox.DataCode, outbox.DataLink,
			outbox.DataBefore} {
			delete(bare.Data, key)
		}
		tests[kind+"-bare"] = bare
	}
	for _, kind := range []string{outbox.KindReminder, outbox.KindDeclined, outbox.KindFailed, outbox.KindActionRequired} {
		linked := withCard(sample(kind))
		linked.Data[outbox.DataLink] = "https://pay.example.com/c/cs_1?step=2&back=%2Fhome"
		linked.Data[outbox.DataLinkExpires] = "2023-06-29T12:15:39.000Z"
		tests[kind+"-link"] = linked
	}
	for _, kind := range []string{outbox.KindReceipt, outbox.KindFailed} {
		tests[kind+"-fallback"] = sample(kind)
		tests[kind+"-fallback"].Data[outbox.DataFallback] = "true"
		tests[kind+"-fallback"].Data[outbox.DataCard] = "Visa ending in 4242"
	}
	tests["receipt-document"] = sample(outbox.KindReceipt)
	tests["receipt-document"].Data[outbox.DataDocument] = "https://pay.example.com/r/Vrw0j6I1NXJPfXtCRiSYuKxn7jAO4RyTIcH4CO2Aeqo"
	tests["reminder-card"] = withCard(sample(outbox.KindReminder))
	delete(tests["reminder-card"].Data, outbox.DataCardExpired)
	tests["reminder-card"].Data[outbox.DataCardExpires] = "2023-12"
	tests["reminder-expired"] = withCard(sample(outbox.KindReminder))
	tests["reminder-trial"] = sample(outbox.KindReminder)
	tests["reminder-trial"].Data[outbox.DataTrial] = "true"
	foreign := sample(outbox.KindReminder)
	foreign.Data[outbox.DataAmountText] = "12,99\u00a0€"
	foreign.Data[outbox.DataSKU] = strings.TrimSpace(strings.Repeat("grün ", 30))
	tests["reminder-foreign"] = foreign

	for name, e := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := compose(e, writer(t))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".eml")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			checkForm(t, got)
		})
	}
}

// checkForm holds a message to what is true of all of them, and returns its subject
// and text.
func checkForm(t testing.TB, message []byte) (subject, text string) {
	t.Helper()
	subject, text, _ = parts(t, message)
	return subject, text
}

func parts(t testing.TB, message []byte) (subject, text, html string) {
	t.Helper()
	for line := range strings.SplitAfterSeq(string(message), "\r\n") {
		bare := strings.TrimSuffix(line, "\r\n")
		if strings.ContainsAny(bare, "\r\n") || len(bare) > 998 || (bare == line && line != "") {
			t.Errorf("malformed line %q", line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		t.Fatalf("unreadable: %v\n%s", err, message)
	}
	want := []string{"Auto-Submitted", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Reply-To",
		"Subject", "To"}
	if got := slices.Sorted(maps.Keys(m.Header)); !slices.Equal(got, want) {
		t.Errorf("headers %q, want %q", got, want)
	}
	for name, values := range m.Header {
		if len(values) != 1 {
			t.Errorf("%s: %d times", name, len(values))
		}
	}
	if to, err := m.Header.AddressList("To"); err != nil || len(to) != 1 {
		t.Errorf("recipients %v, %v; want one", to, err)
	}
	form, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || form != "multipart/alternative" {
		t.Fatalf("form %q, %v", form, err)
	}
	bodies := map[string]string{}
	for r := multipart.NewReader(m.Body, parameters["boundary"]); ; {
		part, err := r.NextPart() // it decodes quoted-printable
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		bodies[part.Header.Get("Content-Type")] += string(body)
	}
	if len(bodies) != 2 {
		t.Errorf("parts %q", slices.Sorted(maps.Keys(bodies)))
	}
	if subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Error(err)
	}
	if strings.ContainsAny(subject, "\r\n") {
		t.Errorf("subject %q of several lines", subject)
	}
	return subject, bodies["text/plain; charset=utf-8"], bodies["text/html; charset=utf-8"]
}

func TestCompose_SaysWhatItIsAbout(t *testing.T) {
	for _, kind := range Kinds() {
		m, err := compose(sample(kind), writer(t))
		if err != nil {
			t.Fatal(err)
		}
		subject, text := checkForm(t, m)
		for _, want := range []string{"sub1", "gold-monthly", "$12.99", "28 June 2023", "acme", "Bücher", "12 Bridge"} {
			if kind == outbox.KindCancelled && (want == "$12.99" || want == "28 June 2023") { // no more payments
				continue
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in the text:\n%s", kind, want, text)
			}
		}
		if want := "gold-monthly"; !strings.Contains(subject, want) {
			t.Errorf("%s: subject %q", kind, subject)
		}
	}
}

func TestCompose_SameEffectSameMessage(t *testing.T) {
	e := sample(outbox.KindReceipt)
	first, err := compose(e, writer(t))
	if err != nil {
		t.Fatal(err)
	}
	e.Tries, e.Error, e.Due = 4, "disk full", e.Due.Add(time.Hour)
	e.Created = e.Created.UTC()
	again, err := compose(e, writer(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again) {
		t.Errorf("first\n%s\nagain\n%s", first, again)
	}
	other := e
	other.ID += "x"
	if name(other) == name(e) {
		t.Error("two effects share a name")
	}
}

// hostile are values that try to become headers, recipients, lines or markup.
func hostile() []string {
	return []string{"x\r\nBcc: eve@example.com", "x\nBcc: eve@example.com", "x\rBcc: eve@example.com", "\r\n\r\n<p>hello",
		"=?utf-8?q?=0D=0ABcc:_eve@example.com?=", "x\u2028Amount: $0", "x\u202egnp", "x\x00y",
		strings.Repeat("long", 5000), "\xff\xfe", "."}
}

func TestCompose_NothingIsInjected(t *testing.T) {
	for _, kind := range Kinds() {
		for key := range sample(kind).Data {
			for _, value := range hostile() {
				e := sample(kind)
				e.Data[key] = value
				m, err := compose(e, writer(t))
				if key == outbox.DataEmail {
					if !errors.Is(err, outbox.ErrPermanent) {
						t.Errorf("%s: address %q: %v, want permanent", kind, value, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %s %q: %v", kind, key, value, err)
					continue
				}
				subject, text := checkForm(t, m)
				if strings.Contains(text, "\r\nBcc:") || strings.Contains(text, "\r\nAmount:") ||
					strings.ContainsAny(subject+text, "\x00\u202e\u2028") {
					t.Errorf("%s: %s %q came through:\n%s\n%s", kind, key, value, subject, text)
				}
			}
		}
		for _, id := range hostile() {
			e := sample(kind)
			e.ID = id
			m, err := compose(e, writer(t))
			if err != nil {
				t.Fatal(err)
			}
			checkForm(t, m)
		}
	}
}

func TestCompose_Undeliverable(t *testing.T) {
	tests := map[string]func(e *outbox.Effect){
		"unknown kind":    func(e *outbox.Effect) { e.Kind = "telegram" },
		"kind as a path":  func(e *outbox.Effect) { e.Kind = "../receipt" },
		"no address":      func(e *outbox.Effect) { delete(e.Data, outbox.DataEmail) },
		"two addresses":   func(e *outbox.Effect) { e.Data[outbox.DataEmail] = "a@example.com, b@example.com" },
		"folded address":  func(e *outbox.Effect) { e.Data[outbox.DataEmail] = "\"a\r\n b\"@example.com" },
		"no subscription": func(e *outbox.Effect) { e.Data[outbox.DataSubscription] = " " },
		"no amount":       func(e *outbox.Effect) { e.Data[outbox.DataAmountText], e.Data[outbox.DataAmount] = "", "" },
		"no data":         func(e *outbox.Effect) { e.Data = nil },
	}
	for name, spoil := range tests {
		e := sample(outbox.KindReceipt)
		spoil(&e)
		if _, err := compose(e, writer(t)); !errors.Is(err, outbox.ErrPermanent) {
			t.Errorf("%s: %v, want permanent", name, err)
		} else if strings.Contains(err.Error(), "@") {
			t.Errorf("%s: the error shows an address: %v", name, err)
		}
	}
}

func TestCompose_KeepsQuietAboutSomeReasons(t *testing.T) {
	for _, code := range []string{"stolen_card", "lost_card", "fraudulent", "pickup_card", "what-ever"} {
		e := sample(outbox.KindFailed)
		e.Data[outbox.DataCode] = code
		m, err := compose(e, writer(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, text := checkForm(t, m); strings.Contains(text, code) || strings.Contains(text, "Reason") {
			t.Errorf("%s: tells\n%s", code, text)
		}
	}
}

func TestCompose_Links(t *testing.T) {
	good := "https://pay.example.com/c?x=1&y=%20"
	for link, shown := range map[string]bool{good: true, "http://localhost:8080/p": true, "": false,
		"javascript:alert(1)":                false,
		"https://bank.example@evil.example/": false, "https://a.example/ x": false, "https://a.example/\r\nx": false,
		"/relative": false} {
		for kind, words := range map[string]string{outbox.KindActionRequired: "confirm it here",
			outbox.KindDeclined: "update them here",
			outbox.KindFailed:   "payment method here", outbox.KindReminder: "a new one here"} {
			e := withCard(sample(kind))
			e.Data[outbox.DataLink], e.Data[outbox.DataLinkExpires] = link, "2023-06-29T12:15:39.000Z"
			m, err := compose(e, writer(t))
			if err != nil {
				t.Fatal(err)
			}
			_, text := checkForm(t, m)
			if got := strings.Contains(text, words); got != shown || (shown && !strings.Contains(text, "\r\n"+link+"\r\n")) ||
				strings.Contains(text, "29 June 2023") != shown {
				t.Errorf("%s, link %q: shown %v, want %v:\n%s", kind, link, got, shown, text)
			}
		}
	}
	// nothing for the reader to do
	for _, e := range []outbox.Effect{sample(outbox.KindReceipt), sample(outbox.KindReminder)} {
		e.Data[outbox.DataLink] = good
		m, err := compose(e, writer(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, text := checkForm(t, m); strings.Contains(text, good) {
			t.Errorf("%s leads to\n%s", e.Kind, text)
		}
	}
}

func FuzzCompose(f *testing.F) {
	for i, value := range hostile() {
		f.Add(i, value, value)
	}
	f.Fuzz(func(t *testing.T, which int, value, id string) {
		e := sample(Kinds()[uint(which)%uint(len(Kinds()))])
		e.ID = id
		keys := slices.Sorted(maps.Keys(e.Data))
		e.Data[keys[uint(which)/8%uint(len(keys))]] = value
		m, err := compose(e, writer(t))
		if err == nil {
			checkForm(t, m)
		} else if !errors.Is(err, outbox.ErrPermanent) {
			t.Error(err)
		}
	})
}

// TestWriter_Operator: mail to the operator is the text as it is, in any kind of characters.
func TestWriter_Operator(t *testing.T) {
	templates, err := NewTemplates("")
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(templates, settings.Default())
	if err != nil {
		t.Fatal(err)
	}
	m, err := w.Message(outbox.Effect{ID: "operator#1", Kind: outbox.KindOperator, Data: map[string]string{
		outbox.DataEmail: "ops@example.com", outbox.DataSubject: "wrong:\r\nBcc: x@example.com", outbox.DataText: "a <b> c\n"}})
	text := string(m.Bytes)
	if err != nil || m.To != "<ops@example.com>" || strings.Contains(text, "\nBcc:") || !strings.Contains(text, "\r\na <b> c\r\n") ||
		!strings.Contains(text, "a &lt;b&gt; c") {
		t.Errorf("%v\n%s", err, text)
	}
}
