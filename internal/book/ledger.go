package book

import (
	"hash/maphash"
	"strconv"
	"strings"
)

// A ledger remembers, for every row, the facts that a later row may contradict. It takes up to 100
// bytes for a row with an account of its own, so that a million fit. It keeps hashes under a random
// seed, not texts. Two of a million rows are confused once in forty million imports, and not again
// in the next import of the same file.
type ledger struct {
	seed          maphash.Seed
	subscriptions map[uint64]uint32 // account/subscription -> line
	accounts      map[uint64]holder
	zones         []string // by holder.zone
	zoneIndex     map[string]uint32
	key           []byte
}

// A holder is the first row of an account.
type holder struct {
	email uint64
	line  uint32
	zone  uint32
}

func newLedger() ledger {
	return ledger{seed: maphash.MakeSeed(), subscriptions: map[uint64]uint32{}, accounts: map[uint64]holder{},
		zoneIndex: map[string]uint32{}}
}

// lineOf returns the earlier line of the account's subscription. If there is none it returns 0 and
// remembers this line.
func (l *ledger) lineOf(line int, account, id string) int {
	l.key = append(append(append(l.key[:0], account...), '/'), id...) // neither has a slash
	h := maphash.Bytes(l.seed, l.key)
	if first, ok := l.subscriptions[h]; ok {
		return int(first)
	}
	l.subscriptions[h] = uint32(line)
	return 0
}

// A standing compares a row with the first of its account.
type standing struct {
	line      int // the account's first
	sameEmail bool
	zone      string // in the account's first row
}

// holderOf compares the row with the account's first.
func (l *ledger) holderOf(line int, account, email, zone string) standing {
	h, e := maphash.String(l.seed, account), maphash.String(l.seed, email)
	a, ok := l.accounts[h]
	if !ok {
		a = holder{email: e, line: uint32(line), zone: l.zone(zone)}
		l.accounts[h] = a
	}
	return standing{int(a.line), a.email == e, l.zones[a.zone]}
}

// zone returns the index of a zone's name. There are no more names than zones.
func (l *ledger) zone(name string) uint32 {
	z, ok := l.zoneIndex[name]
	if !ok {
		name = strings.Clone(name)
		z = uint32(len(l.zones))
		l.zones = append(l.zones, name)
		l.zoneIndex[name] = z
	}
	return z
}

func onLine(line int) string { return " on line " + strconv.Itoa(line) }
