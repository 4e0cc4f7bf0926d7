package document

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/sealed"
)

// Path begins the path of a document's link. The token follows.
const Path = "/r/"

// Links signs links to documents. The token is the sealed account and receipt id, because an
// account's id may be personal. It never expires: a receipt is kept for years, in mail and by
// accountants, and the page ends with the receipt. The setting receipt-links replaces the key, and
// so ends all links.
type Links struct {
	base string // "": mail has no links
	key  sealed.Key
}

// NewLinks returns the links of the store with the salt, as its settings are.
func NewLinks(s *settings.Settings, salt string) *Links {
	l := &Links{key: sealed.NewKey(salt, "receipt links\x00"+strconv.Itoa(s.ReceiptLinks))}
	if s.Links() && salt != "" {
		l.base = s.PublicURL
	}
	return l
}

// To returns the link to the account's receipt, or "" if there are no links.
func (l *Links) To(account, id string) string {
	if l == nil || l.base == "" || account == "" || id == "" {
		return ""
	}
	return l.base + Path + l.key.Seal(account+"\x00"+id)
}

// Open returns what the token names. It returns false for a token that this store has not made with
// the same settings.
func (l *Links) Open(token string) (account, id string, ok bool) {
	text, ok := l.key.Open(token)
	if l.base == "" || !ok {
		return "", "", false
	}
	return strings.Cut(text, "\x00")
}

// Serves reports whether the links lead to the host, as a request names it.
func (l *Links) Serves(host string) bool {
	u, err := url.Parse(l.base)
	if l.base == "" || err != nil {
		return false
	}
	usual := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return strings.EqualFold(strings.TrimSuffix(host, usual), strings.TrimSuffix(u.Host, usual))
}
