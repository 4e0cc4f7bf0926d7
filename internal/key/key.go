// Package key creates, finds, lists and revokes API keys for the HTTP API. A key has a name and a scope.
// It may also have a merchant and an expiry. The store contains only the SHA-256 of the key's secret.
//
// It does not know the routes, and does not decide which scope a request needs.
package key

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Scope defines what a key may do. Each scope includes the scopes before it. The zero Scope
// includes none.
type Scope string

// The scopes.
const (
	Read   Scope = "read"   // look at everything, and change nothing
	Write  Scope = "write"  // change what moves no money
	Charge Scope = "charge" // charge and refund
	Admin  Scope = "admin"  // change the installation itself
)

// Scopes returns all scopes, starting with the smallest.
func Scopes() []Scope { return []Scope{Read, Write, Charge, Admin} }

// Includes reports whether a key with this scope may make requests that need the other scope.
func (s Scope) Includes(other Scope) bool {
	need := slices.Index(Scopes(), other)
	return need >= 0 && slices.Index(Scopes(), s) >= need
}

// A Key describes an API key, without its secret. Times are UTC, in milliseconds.
type Key struct {
	ID       string // dd_ and ten letters and digits: the visible part of the key
	Name     string
	Scope    Scope
	Merchant string // UUID in lower case: the key sees that merchant alone; "": all
	Created  time.Time
	Expires  time.Time // from then on it is refused; zero: never
	Revoked  time.Time // zero: it is not
	Used     time.Time // the last use, as of a minute ago; zero: none

	hash string // SHA-256 of the secret, in hexadecimal
	of   string // of a session: the ID of the key it was signed in with, or "" for a one-time link
}

// Actor returns who makes the key's requests, for the history.
func (k *Key) Actor() string {
	if strings.HasPrefix(k.ID, sessionPrefix) && k.of == "" {
		return "operator"
	}
	return "key " + k.Name
}

// Active reports whether the key is valid at the time.
func (k *Key) Active(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// Sees reports whether the key may see the merchant's data.
func (k *Key) Sees(merchant string) bool {
	return k.Merchant == "" || strings.EqualFold(k.Merchant, merchant)
}

// The forms of a name, of a merchant and of a whole key.
var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	keyForm  = regexp.MustCompile(`^(dd_[a-z2-7]{10})_([0-9a-f]{64})$`)
)

// IDPrefix begins the ID of each key.
const IDPrefix = "dd_"

// Check returns a field.Error for each wrong field of a new key as one error, or nil.
func (k *Key) Check(now time.Time) error {
	var name, scope, merchant, expires error
	switch {
	case !nameForm.MatchString(k.Name) || strings.HasPrefix(k.Name, IDPrefix):
		name = field.Wrong("name", "must be 1 to 64 letters, digits and . _ -, and not begin with "+IDPrefix)
	case secret.HasCardNumber(k.Name):
		name = field.Wrong("name", "looks like a card number, which Duesday never accepts")
	}
	if !slices.Contains(Scopes(), k.Scope) {
		scope = field.Wrong("scope", "must be read, write, charge or admin")
	}
	if k.Merchant != "" && !uuidForm.MatchString(k.Merchant) {
		merchant = field.Wrong("merchant", "must be a UUID, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58")
	}
	if !k.Active(now) {
		expires = field.Wrong("expires", "must be in the future")
	}
	return errors.Join(name, scope, merchant, expires)
}

// partition is that of the keys in the recurring-payments table; their sort keys are their ids.
const partition = "KEYS"

func at(id string) store.Key { return store.Key{PK: partition, SK: id} }

// kept is how long a revoked or expired key is still listed.
const kept = 400 * 24 * time.Hour

const stampLayout = "2006-01-02T15:04:05.000Z"

func date(name string, t time.Time) store.Attribute {
	return store.Attribute{Name: name, Value: store.S(t.UTC().Format(stampLayout))}
}

// end is the attributes of an end at the time: of that name, and the TTL.
func end(name string, t time.Time) []store.Attribute {
	return []store.Attribute{date(name, t), {Name: schema.TTL, Value: store.Int(t.Add(kept).Unix())}}
}

func (k *Key) item() store.Item {
	it := store.NewItem(date(schema.CreatedDate, k.Created))
	for name, text := range map[string]string{schema.PK: partition, schema.SK: k.ID, schema.Name: k.Name,
		schema.Scope: string(k.Scope), schema.SecretHash: k.hash, schema.Merchant: k.Merchant, schema.Object: k.of} {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	if !k.Expires.IsZero() {
		for _, a := range end(schema.ExpiresDate, k.Expires) {
			it.Set(a.Name, a.Value)
		}
	}
	return it
}

// keyOf reads the item of a key. A key with an illegible limit is revoked.
func keyOf(it store.Item) *Key {
	k := &Key{ID: it.Str(schema.SK), Name: it.Str(schema.Name), Scope: Scope(it.Str(schema.Scope)),
		Merchant: it.Str(schema.Merchant), hash: it.Str(schema.SecretHash), of: it.Str(schema.Object)}
	illegible := it.Has(schema.Merchant) && k.Merchant == ""
	for name, t := range map[string]*time.Time{schema.CreatedDate: &k.Created, schema.ExpiresDate: &k.Expires,
		schema.RevokedDate: &k.Revoked, schema.UsedDate: &k.Used} {
		var err error
		*t, err = time.Parse(stampLayout, it.Str(name))
		illegible = illegible || err != nil && it.Has(name)
	}
	if illegible && k.Revoked.IsZero() {
		k.Revoked = time.Unix(0, 0).UTC()
	}
	return k
}
