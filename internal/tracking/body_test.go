package tracking

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBody_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		packed, err := pack(nil, body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unpack(packed)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("got %q, %v, want %q", got, err, body)
		}
	})
	for _, n := range []int{0, 1, 1 << 20, maxBody} {
		body := bytes.Repeat([]byte("a"), n)
		packed, err := pack(nil, body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := unpack(packed); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
		if n > 1000 && len(packed) > n/10 {
			t.Errorf("%d bytes that are all alike take %d", n, len(packed))
		}
	}
	if _, err := pack(nil, make([]byte, maxBody+1)); err == nil {
		t.Error("packed more than may be read")
	}
	if got, err := unpack(nil); got != nil || err != nil {
		t.Errorf("of none: %v, %v", got, err)
	}
}

// TestBody_Garbage checks that garbage in the store causes an error, and neither a panic nor a huge
// allocation.
func TestBody_Garbage(t *testing.T) {
	packed, err := pack(nil, []byte(strings.Repeat(`{"id":"evt_1"}`, 100)))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{{0}, {2, 3, 4}, {formatS2}, {formatS2, 0xff, 0xff, 0xff, 0xff, 0x0f},
		packed[:len(packed)-1], {formatS2, 0x81, 0x80, 0x80, 0x02, 0}, []byte("{}")} {
		if got, err := unpack(bad); err == nil {
			t.Errorf("%v: %d bytes", bad[:min(8, len(bad))], len(got))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := rapid.SliceOf(rapid.Byte()).Draw(t, "bad")
		if got, err := unpack(append([]byte{formatS2}, bad...)); err == nil && len(got) > maxBody {
			t.Fatalf("%d bytes", len(got))
		}
		broken := bytes.Clone(packed)
		broken[rapid.IntRange(0, len(broken)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		_, _ = unpack(broken) // an error or not, but no panic
	})
}

func TestWithoutSecrets(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: `{}`,
		`{"client_secret":"pi_1_secret_a","id":"pi_1"}`:                 `{"client_secret":"","id":"pi_1"}`,
		`{"client_secret" : "pi_1_secret_a" }`:                          `{"client_secret":"" }`,
		"{\n\"client_secret\"\n:\n\"pi_1_secret_a\"\n}":                 "{\n\"client_secret\":\"\"\n}",
		`{"client_secret":null,"id":"pi_1"}`:                            `{"client_secret":null,"id":"pi_1"}`,
		`{"client_secret":"a\"b\\","id":"pi_1"}`:                        `{"client_secret":"","id":"pi_1"}`,
		`{"client_secret":"","id":"pi_1"}`:                              `{"client_secret":"","id":"pi_1"}`,
		`{"a":{"client_secret":"x"},"b":[{"client_secret":"y"}]}`:       `{"a":{"client_secret":""},"b":[{"client_secret":""}]}`,
		`{"a":"client_secret","b":"kept"}`:                              `{"a":"client_secret","b":"kept"}`,
		`{"a":["client_secret","kept"]}`:                                `{"a":["client_secret","kept"]}`,
		`{"my_client_secret":"kept"}`:                                   `{"my_client_secret":"kept"}`,
		`{"text":"the \"client_secret\" is kept"}`:                      `{"text":"the \"client_secret\" is kept"}`,
		`{"url":"https://a/pi_1_secret_aZ9/b","c":"seti_2_secret_x-y"}`: `{"url":"https://a/pi_1_secret_/b","c":"seti_2_secret_-y"}`,
		`{"client_secret":{"client_secret":"x"},"client_secret":1}`:     `{"client_secret":{"client_secret":""},"client_secret":1}`,
	} {
		if got := string(withoutSecrets([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// TestWithoutSecrets_Property checks that withoutSecrets returns the same JSON with every client
// secret emptied.
func TestWithoutSecrets_Property(t *testing.T) {
	names := rapid.SampledFrom([]string{"client_secret", "secret", "a", `client_secret\`, `"client_secret":"`, "ü"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		texts := rapid.OneOf(names, rapid.StringN(0, 10, -1))
		leaf := rapid.OneOf(rapid.Map(texts, func(s string) any { return s }), rapid.Just[any](nil), rapid.Just[any](true))
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(names, value(depth-1), 0, 4), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		in, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(emptied(v))
		if err != nil {
			t.Fatal(err)
		}
		if got := withoutSecrets(in); !bytes.Equal(got, want) {
			t.Fatalf("%s\n got %s\nwant %s", in, got, want)
		}
	})
}

// emptied returns the value without its client secrets.
func emptied(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = emptied(v[i])
		}
		return list
	case map[string]any:
		all := map[string]any{}
		for name, of := range v {
			if _, ok := of.(string); ok && name == "client_secret" {
				of = ""
			}
			all[name] = emptied(of)
		}
		return all
	}
	return v
}
