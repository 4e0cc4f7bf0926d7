package tracking

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"sync"
)

// maxBody is how large a stored body may become when it is read: more than any that is taken in.
const maxBody = 4 << 20

// Compressors are large; there is one for each event that is being stored.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	return w
}}

func pack(body []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(body) / 2)
	w, ok := packers.Get().(*flate.Writer)
	if !ok {
		return nil, errors.New("no compressor") // unreachable: the pool holds nothing else
	}
	defer packers.Put(w)
	w.Reset(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	r := flate.NewReader(bytes.NewReader(packed))
	body, err := io.ReadAll(io.LimitReader(r, maxBody))
	return body, errors.Join(err, r.Close())
}

// secretMember is a member of Stripe's objects that lets whoever has it complete a payment.
const secretMember = `"client_secret"`

// withoutSecrets returns the body with the client secrets taken out of it: they are nobody's to
// keep. What the body says otherwise stays as it is.
func withoutSecrets(body []byte) []byte {
	if !bytes.Contains(body, []byte(secretMember)) {
		return body
	}
	out := make([]byte, 0, len(body))
	for {
		i := bytes.Index(body, []byte(secretMember))
		if i < 0 {
			return append(out, body...)
		}
		i += len(secretMember)
		out = append(out, body[:i]...)
		body = body[i:]
		rest := bytes.TrimLeft(body, " \t\r\n:")
		if len(rest) == 0 || rest[0] != '"' {
			continue // null, or no member of an object
		}
		end := closing(rest)
		if end < 0 {
			return append(out, body...) // unreachable: the body was valid JSON
		}
		out = append(out, `:""`...)
		body = rest[end:]
	}
}

// closing returns where the JSON string at the beginning of text ends, or -1.
func closing(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
