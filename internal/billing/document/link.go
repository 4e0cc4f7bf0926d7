package document

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing/settings"
)

// Path begins the path of a document's link. The token follows.
const Path = "/r/"

// Links signs links to documents. The token is an encrypted account and receipt id, because an
// account's id may be personal, and its own checksum (a synthetic IV, as RFC 5297 defines it, by
// HMAC-SHA256). It is always the same for one receipt. It never expires: a receipt is kept for
// years, in mail and by accountants, and the page ends with the receipt. The setting receipt-links
// replaces the keys, and so ends all links.
type Links struct {
	base string // "": mail has no links
	keys [2][32]byte
}

// NewLinks returns the links of the store with the salt, as its settings are.
func NewLinks(s *settings.Settings, salt string) *Links {
	l := &Links{}
	if s.Links() && salt != "" {
		l.base = s.PublicURL
	}
	for i := range l.keys {
		m := hmac.New(sha256.New, []byte(salt))
		m.Write([]byte("receipt links\x00" + strconv.Itoa(s.ReceiptLinks) + "\x00" + strconv.Itoa(i)))
		m.Sum(l.keys[i][:0])
	}
	return l
}

// To returns the link to the account's receipt, or "" if there are no links.
func (l *Links) To(account, id string) string {
	if l == nil || l.base == "" || account == "" || id == "" {
		return ""
	}
	text := []byte(account + "\x00" + id)
	token := l.sum(text)
	return l.base + Path + base64.RawURLEncoding.EncodeToString(append(token, l.crypt(token, text)...))
}

// Open returns what the token names. It returns false for a token that this store has not made with
// the same settings.
func (l *Links) Open(token string) (account, id string, ok bool) {
	const most = 600 // an id has at most 128 bytes
	if l.base == "" || len(token) > most {
		return "", "", false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(sealed) < aes.BlockSize || base64.RawURLEncoding.EncodeToString(sealed) != token { // decoding skips line breaks
		return "", "", false
	}
	text := l.crypt(sealed[:aes.BlockSize], sealed[aes.BlockSize:])
	if !hmac.Equal(l.sum(text), sealed[:aes.BlockSize]) { // in constant time
		return "", "", false
	}
	return strings.Cut(string(text), "\x00")
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

func (l *Links) sum(text []byte) []byte {
	m := hmac.New(sha256.New, l.keys[0][:])
	m.Write(text)
	return m.Sum(nil)[:aes.BlockSize]
}

// crypt encrypts or decrypts.
func (l *Links) crypt(iv, text []byte) []byte {
	block, _ := aes.NewCipher(l.keys[1][:]) // a valid length
	out := make([]byte, len(text))
	cipher.NewCTR(block, iv).XORKeyStream(out, text)
	return out
}
