package tracking

import (
	"strings"
	"testing"
)

func TestCheckUUID(t *testing.T) {
	const right = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"
	for _, text := range []string{right, strings.ToUpper(right), "0B6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"} {
		if got, err := checkUUID("account", text); got != right || err != nil {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", right + "0", right[1:], "{" + right + "}", "urn:uuid:" + right,
		strings.ReplaceAll(right, "-", ""), strings.Replace(right, "-", "_", 1),
		strings.Replace(right, "0", "g", 1), " " + right[1:], strings.Replace(right, "b6", "é", 1), right[:35] + "\n",
		right[:35] + "#"} {
		if got, err := checkUUID("account", text); err == nil || got != "" || !strings.Contains(err.Error(), "account") {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
}

func TestIsID(t *testing.T) {
	for text, want := range map[string]bool{
		"acct_1A2b3C": true, "acct_a-b_c": true, "acct_" + strings.Repeat("x", maxID-5): true,
		"": false, "acct_": false, "acct": false, "cus_1": false, "Acct_1": false, "acct_1/2": false, "acct_1#2": false,
		"acct_1 2": false, "acct_é": false, "acct_\x00": false,
		"acct_1?a=b": false, "acct_..": false, "acct_" + strings.Repeat("x", maxID-4): false,
	} {
		if got := isID(text, "acct_"); got != want {
			t.Errorf("%.40q: got %v", text, got)
		}
	}
}

func TestPurchaseID(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][]string{{"i", "a", "k"}, {"i", "a", "k2"}, {"i", "ak", ""}, {"ia", "", "k"}, {"", "ia", "k"},
		{"i", "a", "1:k"}, {"i", "a1:k", ""}} {
		id := purchaseID(parts...)
		if !IsUUID(id) || id[14] != '8' || !strings.ContainsRune("89ab", rune(id[19])) || id != purchaseID(parts...) {
			t.Errorf("%v: %s is no UUID of version 8", parts, id)
		}
		if other := seen[id]; other != "" {
			t.Errorf("%v and %s have one id", parts, other)
		}
		seen[id] = strings.Join(parts, "|")
	}
}
