package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// Kinds of keys, the second byte. Those between are indexes, numbered from 1.
const (
	kindBase   = 0x00
	kindExpiry = 0xFF

	maxTables  = 0xFF // ids 1 to 255; 0 begins the store's own keys
	maxIndexes = 0xFE
)

// Every component of a key but the last is escaped: 00 becomes 00 FF, and 00 01 ends the
// component. The end is less than every continuation of the component, so "a" stays before
// "a\x00" and both before "ab".
const (
	escape   = 0x00
	escaped0 = 0xFF
	ended    = 0x01
	afterEnd = 0x02 // greater than the end, less than any continuation
)

var (
	// metaKey holds the store's description of itself; no table has that id.
	metaKey = []byte("\x00meta")

	errKey = fmt.Errorf("%w: malformed key", store.ErrFormat)
)

// appendEscaped appends s escaped, without an end.
func appendEscaped(dst []byte, s string) []byte {
	return append(dst, strings.ReplaceAll(s, "\x00", "\x00\xFF")...)
}

func appendComponent(dst []byte, s string) []byte {
	return append(appendEscaped(dst, s), escape, ended)
}

// cutComponent splits an escaped component from the front of key. The component is
// returned as it is stored; plain says that it contains no escapes.
func cutComponent(key []byte) (component, rest []byte, plain bool, err error) {
	plain = true
	for i := 0; ; i += 2 {
		n := bytes.IndexByte(key[i:], escape)
		if n < 0 || i+n+1 >= len(key) {
			return nil, nil, false, errKey
		}
		i += n
		switch key[i+1] {
		case ended:
			return key[:i], key[i+2:], plain, nil
		case escaped0:
			plain = false
		default:
			return nil, nil, false, errKey
		}
	}
}

func unescaped(component []byte) string {
	return strings.ReplaceAll(string(component), "\x00\xFF", "\x00")
}

// appendBaseKey appends the key of an item, whose first byte is the table's id.
func appendBaseKey(dst []byte, table byte, k store.Key) []byte {
	return appendKeyTail(append(dst, table, kindBase), k)
}

func appendKeyTail(dst []byte, k store.Key) []byte {
	return append(appendComponent(dst, k.PK), k.SK...)
}

// appendIndexKey appends the key of an index row.
func appendIndexKey(dst []byte, table, index byte, ik, k store.Key) []byte {
	dst = appendComponent(append(dst, table, index), ik.PK)
	return appendKeyTail(appendComponent(dst, ik.SK), k)
}

// appendExpiryKey appends the key of a TTL entry; expiry is positive.
func appendExpiryKey(dst []byte, table byte, expiry int64, k store.Key) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, table, kindExpiry), uint64(expiry))
	return appendKeyTail(dst, k)
}

// cutExpiry splits a TTL entry's key, less its two leading bytes.
func cutExpiry(key []byte) (expiry int64, baseTail []byte, err error) {
	if len(key) < 8 {
		return 0, nil, errKey
	}
	return int64(binary.BigEndian.Uint64(key)), key[8:], nil
}

// decodeKeyTail is the reverse of appendKeyTail.
func decodeKeyTail(tail []byte) (store.Key, error) {
	pk, sk, _, err := cutComponent(tail)
	if err != nil {
		return store.Key{}, err
	}
	return store.Key{PK: unescaped(pk), SK: string(sk)}, nil
}

// successor returns the least key above every key with the prefix; it changes prefix. Prefixes
// begin with a table's id and a kind. Only the expiry keys of table 255 can be FF throughout,
// and nil (no bound) is right for them.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			prefix[i]++
			return prefix[:i+1]
		}
	}
	return nil
}
