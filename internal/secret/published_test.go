package secret_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// published are test cards of 14 to 19 digits from the documentation of processors: Stripe,
// Adyen, Braintree, PayPal and Worldpay.
var published = strings.Fields(`
	4242424242424242 4000056655665556 4111111111111111 4012888888881881 4000002500003155 4917610000000000 4988438843884305
	4000000000000000006 4444333322221111455
	5555555555554444 2223003122003222 5200828282828210 5105105105105100 2222400070000005 5454545454545454 2720998837779594
	378282246310005 371449635398431 378734493671000 370000000000002 340000000000009
	6011111111111117 6011000990139424 6011981111111113 6500000000000002 6445644564456445
	3056930009020004 36227206271667 30569309025904 38520000023237 36006666333344 36700102000000
	3566002020360505 3530111333300000 3528000700000000 3569990010095841
	6200000000000005 6200000000000047 6205500000000000004 6243030000000001 8171999927660000 8171999900000000021
	6304000000000000 6759649826438453 6799990100000000019 6771798021000008 6304939304310009610 50339619890917
	586824160825533338 6759411100000008 6759560045005727054 5641821111166669 5000550000000029 6331101999990016 6761000000000006`)

// groupings writes the number in one run, and in each grouping that is usual for its length.
func groupings(number string) (all []string) {
	all = []string{number}
	sizes := [][]int{{4, 4, 4, 4, 4}}
	switch len(number) {
	case 14:
		sizes = append(sizes, []int{4, 6, 4})
	case 15:
		sizes = append(sizes, []int{4, 6, 5})
	case 16:
		sizes = append(sizes, []int{8, 8}, []int{6, 10})
	case 19:
		sizes = append(sizes, []int{6, 13})
	}
	for _, groups := range sizes {
		for _, separator := range []string{" ", "-", ".", "\u00a0", "\u2013", "　", "－", "_", "/", "\u2060"} {
			if len(groups) == 2 && strings.Contains("_/", separator) { // names of accounts and subscriptions
				continue
			}
			var parts []string
			rest := number
			for _, n := range groups {
				n = min(n, len(rest))
				if parts, rest = append(parts, rest[:n]), rest[n:]; rest == "" {
					break
				}
			}
			all = append(all, strings.Join(parts, separator))
		}
	}
	return all
}

// in returns the text with the digits of the script that has this zero.
func in(zero rune, text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return zero + r - '0'
		}
		return r
	}, text)
}

// TestHasCardNumber_Published: every published test card is found in every usual grouping, in
// the digits of several scripts, alone and in a sentence, and nothing but its last four
// digits is left.
func TestHasCardNumber_Published(t *testing.T) {
	cases := 0
	for _, number := range published {
		for _, grouped := range groupings(number) {
			for _, zero := range "0０٠𝟬" {
				text := in(zero, grouped)
				for _, form := range []string{"%s", "Please charge %s, thanks", "(%s)", "%s.", "a: %s\n", "ACC#%s", "1 %s 12"} {
					cases++
					text := fmt.Sprintf(form, text)
					masked := secret.MaskCards(text)
					if !secret.HasCardNumber(text) || strings.Count(masked, "*") != len(number)-4 {
						t.Errorf("%q: masked as %q", text, masked)
					}
				}
			}
		}
	}
	t.Logf("%d cards, %d texts", len(published), cases)
}

// share returns how many random texts of each kind a test tries: 10,000 under -short, 20,000 in go
// test, 50,000 in make check, and 10 million with DUESDAY_SOAK.
func share(t *testing.T) (n int, r *rand.Rand) {
	seed := rand.Uint64()
	n = soaktest.Cases(t, 10_000, soaktest.Share(20_000, 50_000), 10_000_000)
	t.Logf("seed %d", seed)
	return n, rand.New(rand.NewPCG(seed, 0))
}

// TestHasCardNumber_NoIDs: no UUID, ULID, id of Stripe's or hexadecimal id has a card number, not
// even in a payment-method field, and no name of a subscription has one. The hexadecimal ids have
// 20 digits and more: one in 1,800 of those with 16 is a decimal number, and about one in 55,000
// cannot be told from a card number.
func TestHasCardNumber_NoIDs(t *testing.T) {
	t.Parallel()
	n, r := share(t)
	var b [32]byte
	for range n {
		for i := 0; i < len(b); i += 8 {
			for j, v := 0, r.Uint64(); j < 8; j, v = j+1, v>>8 {
				b[i+j] = byte(v)
			}
		}
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		hex := fmt.Sprintf("%x", b)
		uuid := hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:32]
		for _, id := range [...]string{uuid, strings.ToUpper(uuid), ulid(b[:26]), hex, hex[:40], hex[:32], hex[:24],
			hex[:20]} {
			if secret.HasCardInMethod(id) {
				t.Fatalf("%s is taken for a card number: %s", id, secret.MaskMethod(id))
			}
		}
		stripe := [...]string{"pi", "evt", "acct", "cus", "price", "in"}[r.IntN(6)] + "_" + strconv.FormatUint(r.Uint64(), 10)
		for _, text := range [...]string{stripe, uuid + "/" + uuid[9:13], uuid + "/" + uuid,
			fmt.Sprint(r.Uint64N(1e10), "/", r.Uint64N(1e10)), fmt.Sprint(r.Uint64N(1e8), "_", r.Uint64N(1e10)),
			fmt.Sprint(1e7+r.Uint64N(9e7), "/", 1e7+r.Uint64N(9e7), "/", r.IntN(1000))} {
			if secret.HasCardNumber(text) {
				t.Fatalf("%s is taken for a card number: %s", text, secret.MaskCards(text))
			}
		}
	}
}

func ulid(random []byte) string {
	id := make([]byte, len(random))
	for i, b := range random {
		id[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[b%32]
	}
	return string(id)
}

// TestHasCardNumber_NoTimes: no timestamp from 1998 to 2040 has a card number. (Then the
// microseconds since 1970 reach Mastercard's prefixes. Before, .NET's ticks had UnionPay's.)
func TestHasCardNumber_NoTimes(t *testing.T) {
	t.Parallel()
	n, r := share(t)
	const first, last = 883_612_800, 2_208_988_800
	for range n {
		at := time.Unix(first+r.Int64N(last-first), r.Int64N(1e9)).UTC()
		texts := []string{strconv.FormatInt(at.Unix(), 10), strconv.FormatInt(at.UnixMilli(), 10),
			strconv.FormatInt(at.UnixMicro(), 10),
			// the last: .NET's ticks
			strconv.FormatInt(at.UnixNano(), 10), strconv.FormatInt(621355968000000000+at.UnixNano()/100, 10)}
		for _, layout := range []string{time.RFC3339Nano, "20060102150405", "20060102150405.000", "20060102-150405",
			"2006-01-02 15:04:05.000000", "2006.01.02 15.04.05", "060102150405",
			"2006/01/02 15:04:05", "2006_01_02_15_04_05", "20060102_150405", "02/01/2006/1504/05", "2006/0102/1504/0506"} {
			texts = append(texts, at.Format(layout))
		}
		for _, text := range texts {
			if secret.HasCardNumber(text) {
				t.Fatalf("%s is taken for a card number", text)
			}
		}
	}
}

// TestHasCardNumber_NoTelephones: no telephone number has a card number, with its + in no
// field at all, and without in no text and no id.
func TestHasCardNumber_NoTelephones(t *testing.T) {
	t.Parallel()
	n, r := share(t)
	// Country codes, with the most digits that follow them.
	countries := []struct{ code, most string }{{"1", "10"}, {"30", "10"}, {"34", "9"}, {"36", "9"}, {"39", "11"},
		{"43", "10"}, {"44", "10"}, {"49", "11"},
		{"50", "10"}, {"55", "11"}, {"57", "10"}, {"58", "10"}, {"60", "10"}, {"62", "12"}, {"63", "10"}, {"65",
			"8"}, {"67", "10"}, {"81", "10"}, {"82", "10"}, {"86", "11"}}
	for range n {
		c := countries[r.IntN(len(countries))]
		most, _ := strconv.Atoi(c.most)
		number := c.code + fmt.Sprintf("%015d", r.Uint64N(1e15))[:most-r.IntN(3)]
		long := fmt.Sprintf("%d%014d", 1+r.IntN(9), r.Uint64N(1e14))[:8+r.IntN(8)] // as long as E.164 allows
		for _, text := range []string{"+" + number, "+" + long, "tel:+" + long, "+" + spaced(r, long),
			"(+" + spaced(r, number) + ")"} {
			if secret.HasCardInMethod(text) {
				t.Fatalf("%s is taken for a card number", text)
			}
		}
		for _, text := range []string{number, "00" + number, "0" + number[2:], spaced(r, number), "00 " + spaced(r, number)} {
			if secret.HasCardNumber(text) {
				t.Fatalf("%s is taken for a card number", text)
			}
		}
	}
}

// spaced puts a separator into the number in random places, as people do.
func spaced(r *rand.Rand, number string) string {
	separator := string(" -."[r.IntN(3)])
	var out strings.Builder
	for len(number) > 0 {
		n := min(len(number), 2+r.IntN(4))
		out.WriteString(number[:n])
		if number = number[n:]; number != "" {
			out.WriteString(separator)
		}
	}
	return out.String()
}
