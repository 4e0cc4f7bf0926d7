package document_test

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/billing/settings"
)

func linked() *settings.Settings {
	s := settings.Default()
	s.PublicURL, s.Seller, s.SellerAddress = "https://pay.example.com", "Gym Ltd", "Here"
	return &s
}

func token(t *testing.T, l *document.Links, account, id string) string {
	t.Helper()
	token, ok := strings.CutPrefix(l.To(account, id), "https://pay.example.com/r/")
	if !ok || token == "" {
		t.Fatalf("%q", l.To(account, id))
	}
	return token
}

const id = "20260628-8F3K20QX-M4ZN7TRA"

func TestLinks_OpenWhatTheyMade(t *testing.T) {
	l := document.NewLinks(linked(), "salt")
	for _, account := range []string{"1001", "ada.lovelace@example.com", "ü", strings.Repeat("a", 128)} {
		made := token(t, l, account, id)
		gotAccount, gotID, ok := l.Open(made)
		if !ok || gotAccount != account || gotID != id {
			t.Errorf("%s: %s, %s, %v", account, gotAccount, gotID, ok)
		}
		if made != token(t, document.NewLinks(linked(), "salt"), account, id) {
			t.Errorf("%s: another process makes another link", account)
		}
		if len(made) > 300 || strings.Contains(made, account) && len(account) > 2 {
			t.Errorf("%s: %s", account, made)
		}
	}
}

// TestLinks_RevealNothing: without the salt, nobody learns which accounts two links are of.
func TestLinks_RevealNothing(t *testing.T) {
	l := document.NewLinks(linked(), "salt")
	a, b := token(t, l, "ada.lovelace@example.com", id), token(t, l, "ada.lovelace@example.com", "20260728-8F3K20QX-M4ZN7TRA")
	for i := range len(a) - 8 {
		if strings.Contains(b, a[i:i+8]) {
			t.Errorf("%s and %s have %s in common", a, b, a[i:i+8])
		}
	}
}

// TestLinks_Forged: no change of a token, however small, opens anything.
func TestLinks_Forged(t *testing.T) {
	l := document.NewLinks(linked(), "salt")
	made := token(t, l, "1001", id)
	forged := []string{"", "x", made + "A", made + "=", made + "==", made[:len(made)-1], made[1:], made + "/", "/" + made, made + "\n", " " + made,
		strings.Repeat("A", 22), strings.Repeat("A", 10_000), made + made, strings.ToUpper(made), "1001." + id}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range made {
		for _, c := range alphabet {
			if changed := made[:i] + string(c) + made[i+1:]; changed != made {
				forged = append(forged, changed)
			}
		}
	}
	for _, text := range forged {
		if account, _, ok := l.Open(text); ok {
			t.Errorf("%s opens account %s", text, account)
		}
	}
}

// TestLinks_Others: a rotation, another store and a store without links open nothing.
func TestLinks_Others(t *testing.T) {
	made := token(t, document.NewLinks(linked(), "salt"), "1001", id)
	rotated, bare, off := linked(), linked(), linked()
	rotated.ReceiptLinks, bare.Seller, off.PublicURL = 2, "", ""
	for name, l := range map[string]*document.Links{"rotated": document.NewLinks(rotated, "salt"), "another store": document.NewLinks(linked(), "pepper"),
		"no seller": document.NewLinks(bare, "salt"), "no URL": document.NewLinks(off, "salt"), "no salt": document.NewLinks(linked(), "")} {
		if _, _, ok := l.Open(made); ok {
			t.Errorf("%s: opens it", name)
		}
		if (name == "rotated" || name == "another store") == (l.To("1001", id) == "") {
			t.Errorf("%s: %q", name, l.To("1001", id))
		}
	}
	if l := document.NewLinks(linked(), "salt"); l.To("", id)+l.To("1", "") != "" {
		t.Error("a link to nothing")
	}
}

func TestLinks_Serves(t *testing.T) {
	for _, c := range []struct {
		url, host string
		want      bool
	}{
		{"https://pay.example.com", "pay.example.com", true}, {"https://pay.example.com", "PAY.example.com:443", true},
		{"https://pay.example.com:443", "pay.example.com", true}, {"https://pay.example.com", "pay.example.com:80", false},
		{"https://pay.example.com", "pay.example.com.evil.example", false}, {"https://pay.example.com", "", false},
		{"https://pay.example.com", "10.0.0.1", false}, {"https://pay.example.com", "pay.example.com.", false},
		{"http://localhost:8083", "localhost:8083", true}, {"http://localhost:8083", "localhost", false}, {"http://[::1]:8083", "[::1]:8083", true},
		{"", "", false}, {"", "pay.example.com", false},
	} {
		s := linked()
		s.PublicURL = c.url
		if got := document.NewLinks(s, "salt").Serves(c.host); got != c.want {
			t.Errorf("%q %q: %v", c.url, c.host, got)
		}
	}
}
