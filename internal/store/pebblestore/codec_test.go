package pebblestore

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

var codecNames = []string{"PK", "SK", "Email", "NextPaymentDate"}

func mustDictionary(t testing.TB, names []string) *Dictionary {
	t.Helper()
	d, err := NewDictionary(names)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// drawString leans to what the codec treats in a special way.
func drawString(t *rapid.T) string {
	switch rapid.IntRange(0, 8).Draw(t, "form") {
	case 0:
		return drawTime(t).Format("2006-01-02T15:04:05.000Z")
	case 1:
		return drawTime(t).Format("2006-01-02")
	case 2:
		return drawTime(t).Format("2006-01-02 15:04:05.000")
	case 3: // digits in the right places, but rarely a time
		const near = `[0-9]{4}-[0-3][0-9]-[0-4][0-9]([T ][0-3][0-9]:[0-7][0-9]:[0-7][0-9]\.[0-9]{3}Z?)?`
		return rapid.StringMatching(near).Draw(t, "near")
	case 8: // the marks in the right places, and what package time takes instead of digits
		const near = `2026-1[0-2]-[0-3]?[0-9][T ][0-2]?[0-9]:[0-5]?[0-9]:[0-5]?[0-9][.,][0-9.,+:Z-]{1,5}Z?`
		return rapid.StringMatching(near).Draw(t, "near marks")
	case 4:
		return string(bytes.Repeat([]byte{'x'}, rapid.IntRange(120, 140).Draw(t, "length")))
	}
	return string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
}

func drawTime(t *rapid.T) time.Time {
	return time.UnixMilli(rapid.Int64Range(minMillis, maxMillis).Draw(t, "millis")).UTC()
}

func drawValue(t *rapid.T, depth int) store.Value {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 && kind > 5 {
		kind = 0
	}
	switch kind {
	case 1:
		return store.Int(rapid.Int64().Draw(t, "int"))
	case 2:
		return store.Int(rapid.Int64Range(-2, 70).Draw(t, "small"))
	case 3:
		v, err := store.Number(rapid.StringMatching(`-?[0-9]{1,25}(\.[0-9]{1,12})?(e-?[0-9]{1,2})?`).Draw(t, "number"))
		if err != nil {
			t.Fatal(err)
		}
		return v
	case 4:
		return store.Bool(rapid.Bool().Draw(t, "bool"))
	case 5:
		return store.B(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "binary"))
	case 6:
		return store.M(drawItem(t, depth-1))
	case 7:
		l := make([]store.Value, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range l {
			l[i] = drawValue(t, depth-1)
		}
		return store.L(l...)
	}
	return store.S(drawString(t))
}

func drawItem(t *rapid.T, depth int) store.Item {
	var it store.Item
	name := rapid.OneOf(rapid.SampledFrom(codecNames), rapid.StringN(1, 5, -1))
	for range rapid.IntRange(0, 6).Draw(t, "attributes") {
		it.Set(name.Draw(t, "name"), drawValue(t, depth))
	}
	return it
}

func TestCodecRoundTrip(t *testing.T) {
	d := mustDictionary(t, codecNames)
	rapid.Check(t, func(t *rapid.T) {
		it := drawItem(t, 3)
		b := d.encode(nil, it, nil)
		got, err := d.decode(b, nil)
		if err != nil || !got.Equal(it) {
			t.Fatalf("decode(encode(%v)) = %v, %v", it, got, err)
		}
	})
}

// The rows of an item and of its indexes give back what the contract says they show,
// whatever bytes the keys are of.
func TestLayoutRoundTrip(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 'b', 0xFE, 0xFF}), 1, 6).Draw(t, "key"))
	})
	table := store.Table{Name: "t", PartitionKey: "PK", SortKey: "SK", Indexes: []store.Index{
		{Name: "some", PartitionKey: "state", SortKey: "due", Include: []string{"Email", "note", "PK"}},
		{Name: "all", PartitionKey: "state", All: true},
		{Name: "turned", PartitionKey: "SK", SortKey: "PK"},
		{Name: "mixed", PartitionKey: "A", SortKey: "SK", Include: []string{"Z"}},
	}}
	l := newLayout(&table, 7, mustDictionary(t, codecNames))
	rapid.Check(t, func(t *rapid.T) {
		it := drawItem(t, 1)
		id := store.Key{PK: key.Draw(t, "pk"), SK: key.Draw(t, "sk")}
		table.SetKey(&it, id)
		for _, name := range []string{"state", "due", "A"} {
			if rapid.Bool().Draw(t, name) {
				it.Set(name, store.S(key.Draw(t, "key")))
			}
		}
		for _, pk := range []string{id.PK, ""} {
			got, err := l.decodeBase(l.key(id)[2:], l.value(it), pk)
			if err != nil || !got.Equal(it) {
				t.Fatalf("base row of %v reads %v, %v", it, got, err)
			}
		}
		m := l.marks(id, it)
		for i := range l.indexes {
			x := &l.indexes[i]
			ik, in := x.KeyOf(it)
			if in != (m[i].key != nil) {
				t.Fatalf("%v in index %s: %v", it, x.Name, !in)
			}
			if !in {
				continue
			}
			for _, pk := range []string{ik.PK, ""} {
				got, err := l.decodeIndex(x, m[i].key[2:], m[i].value, pk)
				if want := table.Project(x.Index, it); err != nil || !got.Equal(want) {
					t.Fatalf("index %s row of %v reads %v, %v", x.Name, it, got, err)
				}
			}
		}
	})
}

func TestKeyOrder(t *testing.T) {
	component := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xFF}), 0, 4).Draw(t, "component"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a := store.Key{PK: component.Draw(t, "pk"), SK: component.Draw(t, "sk")}
		b := store.Key{PK: component.Draw(t, "pk"), SK: component.Draw(t, "sk")}
		want := bytes.Compare([]byte(a.PK), []byte(b.PK))
		if want == 0 {
			want = bytes.Compare([]byte(a.SK), []byte(b.SK))
		}
		if got := bytes.Compare(appendBaseKey(nil, 1, a), appendBaseKey(nil, 1, b)); got != want {
			t.Fatalf("%q and %q compare as %d, want %d", a, b, got, want)
		}
		got, err := decodeKeyTail(appendKeyTail(nil, a))
		if err != nil || got != a {
			t.Fatalf("key %q reads back as %q, %v", a, got, err)
		}
	})
}

// Package time's own layouts are the oracle for what is a time and for how it is written.
func TestTimesAgainstPackageTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawString(t)
		tag, n, ok := packTime(s)
		for _, f := range []struct {
			layout string
			tag    byte
		}{{"2006-01-02T15:04:05.000Z", tagMillis}, {"2006-01-02", tagDate}, {"2006-01-02 15:04:05.000", tagSpaced}} {
			want, err := time.Parse(f.layout, s)
			canonical := err == nil && want.Format(f.layout) == s
			if (ok && tag == f.tag) != canonical {
				t.Fatalf("%q as %s: %v, package time says %v", s, f.layout, ok, canonical)
			}
			if !canonical {
				continue
			}
			if tag == tagDate {
				n *= millisPerDay
			}
			if n != want.UnixMilli() {
				t.Fatalf("%q is %d ms, package time says %d", s, n, want.UnixMilli())
			}
		}
	})
	for days := int64(minDay); days <= maxDay; days++ {
		s := string(appendTime(nil, tagDate, days))
		if tag, got, ok := packTime(s); !ok || tag != tagDate || got != days {
			t.Fatalf("day %d is written %q and read back as %d, %v", days, s, got, ok)
		}
	}
}

// An item of the benchmark's subscription takes about half of its DynamoDB size; the
// bound is there to notice a change for the worse.
func TestEncodedSize(t *testing.T) {
	it := subscription(12345)
	size, err := store.Size(it)
	if err != nil {
		t.Fatal(err)
	}
	l := newLayout(&paymentTables()[0], 1, mustDictionary(t, paymentNames()))
	if n := len(l.value(it)); n > size/2 {
		t.Errorf("an item of %d bytes is encoded in %d", size, n)
	}
}

// Lengths in a damaged item must not make the decoder allocate what they claim.
func TestDecodeAllocationIsBounded(t *testing.T) {
	d := mustDictionary(t, codecNames)
	item := []byte{codecVersion, 255, 255, 1}
	for range store.MaxDepth {
		item = append(item, tagList, 0xFF, 0xFF, 0x3F) // a million elements
	}
	item = append(item, bytes.Repeat([]byte{tagList, 0xFF, 0x7F}, 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := d.decode(item, nil); err == nil {
		t.Fatal("a damaged item was decoded")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(4*len(item)) {
		t.Errorf("decoding %d bytes allocated %d", len(item), got)
	}
}

func TestNestingIsLimited(t *testing.T) {
	d := mustDictionary(t, nil)
	nested := func(depth int) store.Item {
		v := store.Int(1)
		for range depth {
			v = store.L(v)
		}
		return store.NewItem(store.Attribute{Name: "a", Value: v})
	}
	if _, err := d.decode(d.encode(nil, nested(store.MaxDepth), nil), nil); err != nil {
		t.Errorf("%d levels: %v", store.MaxDepth, err)
	}
	if _, err := d.decode(d.encode(nil, nested(store.MaxDepth+1), nil), nil); err == nil {
		t.Errorf("%d levels were decoded", store.MaxDepth+1)
	}
}

// TestDecodeOfDamagedItems cuts items anywhere, and changes each bit: the decoder
// gives an error, or an item that can be encoded.
func TestDecodeOfDamagedItems(t *testing.T) {
	d := mustDictionary(t, codecNames)
	refused := 0
	look := func(b []byte) {
		it, err := d.decode(b, nil)
		if err != nil {
			refused++
			return
		}
		if again, err := d.decode(d.encode(nil, it, nil), nil); err != nil || !again.Equal(it) {
			t.Fatalf("%x reads %v, which was encoded and reads %v, %v", b, it, again, err)
		}
	}
	for _, it := range []store.Item{subscription(1), account(1), store.NewItem(
		store.Attribute{Name: "a", Value: store.L(store.Bool(true), store.B([]byte("b")), store.Int(-1), store.Int(1<<40))},
		store.Attribute{Name: "b", Value: store.M(store.NewItem(store.Attribute{Name: "Email",
			Value: store.S("2026-11-21")}))},
	)} {
		whole := d.encode(nil, it, nil)
		for at := range whole {
			look(whole[:at])
			for bit := range 8 {
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1 << bit
				look(damaged)
			}
		}
	}
	if refused == 0 {
		t.Error("every damaged item was decoded")
	}
}

func FuzzCodec(f *testing.F) {
	d := mustDictionary(f, codecNames)
	f.Add([]byte{})
	f.Add(d.encode(nil, subscription(1), nil))
	f.Add(d.encode(nil, store.NewItem(
		store.Attribute{Name: "a", Value: store.L(store.Bool(true), store.B([]byte("b")), store.Int(-1), store.Int(1<<40))},
		store.Attribute{Name: "b", Value: store.M(account(1))},
	), nil))
	for _, s := range []string{"2026-11-21", "2026-11-21T00:00:00.000Z", "0000-01-01 00:00:00.000"} {
		f.Add(d.encode(nil, store.NewItem(store.Attribute{Name: "t", Value: store.S(s)}), nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		it, err := d.decode(data, nil)
		if err != nil {
			return
		}
		first := d.encode(nil, it, nil)
		again, err := d.decode(first, nil)
		if err != nil || !again.Equal(it) {
			t.Fatalf("%v was encoded and reads %v, %v", it, again, err)
		}
		if second := d.encode(nil, again, nil); !bytes.Equal(first, second) {
			t.Fatalf("encoded as %x, then as %x", first, second)
		}
	})
}

// Key decoding meets arbitrary bytes only after damage, but must not panic then.
func FuzzKeys(f *testing.F) {
	table := paymentTables()[0]
	l := newLayout(&table, 1, mustDictionary(f, codecNames))
	it := subscription(1)
	m := l.marks(table.KeyOf(it), it)
	f.Add(m[0].key[2:], m[0].value)
	f.Add([]byte{0}, []byte{})
	f.Fuzz(func(t *testing.T, tail, value []byte) {
		for i := range l.indexes {
			if it, err := l.decodeIndex(&l.indexes[i], tail, value, ""); err == nil && it == nil {
				t.Error("neither item nor error")
			}
		}
		_, _ = l.decodeBase(tail, value, "")
	})
}
