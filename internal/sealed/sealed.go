// Package sealed turns short texts into tokens for URLs, cookies and forms. Only the holder of the
// key can make or read a token.
//
// It stores nothing, and does not know what a token means or when it expires.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

// maxToken limits the work for a guess. It is more than a token of two IDs has.
const maxToken = 3000

// A Key makes and reads the tokens of one purpose.
type Key struct{ keys [2][32]byte }

// NewKey derives the key of a purpose from a secret. Keys of different labels cannot read each
// other's tokens.
func NewKey(secret, label string) Key {
	var k Key
	for i := range k.keys {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(label + "\x00" + string('0'+rune(i))))
		m.Sum(k.keys[i][:0])
	}
	return k
}

// Seal returns the token of a text: the encrypted text and its own checksum (a synthetic IV, as
// RFC 5297 defines it, by HMAC-SHA256). The same text always has the same token.
func (k *Key) Seal(text string) string {
	iv := k.sum([]byte(text))
	return base64.RawURLEncoding.EncodeToString(append(iv, k.crypt(iv, []byte(text))...))
}

// Open returns the text of a token, or false for a token that this key has not made.
func (k *Key) Open(token string) (text string, ok bool) {
	if len(token) > maxToken {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < aes.BlockSize || base64.RawURLEncoding.EncodeToString(raw) != token { // decoding skips line breaks
		return "", false
	}
	plain := k.crypt(raw[:aes.BlockSize], raw[aes.BlockSize:])
	return string(plain), hmac.Equal(k.sum(plain), raw[:aes.BlockSize]) // in constant time
}

func (k *Key) sum(text []byte) []byte {
	m := hmac.New(sha256.New, k.keys[0][:])
	m.Write(text)
	return m.Sum(nil)[:aes.BlockSize]
}

// crypt encrypts or decrypts.
func (k *Key) crypt(iv, text []byte) []byte {
	block, _ := aes.NewCipher(k.keys[1][:]) // a valid length
	out := make([]byte, len(text))
	cipher.NewCTR(block, iv).XORKeyStream(out, text)
	return out
}
