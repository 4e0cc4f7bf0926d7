package tracking

import (
	"bufio"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"iter"
	"os"
)

// A told is what one event tells of a payment or subscription.
type told struct {
	At, ID, Type string // Stripe account, id of the payment or subscription, type of the event
	Object       Object
}

// sorterFiles is the number of a sorter's files. A rebuild has the objects of one of them in memory.
const sorterFiles = 64

// A sorter puts what events tell of one object into one of its files, in order. The files are
// temporary, private, and removed at once: they go with the process.
type sorter struct {
	seed  maphash.Seed
	files [sorterFiles]*os.File // nil: empty
	out   [sorterFiles]*bufio.Writer
	n     int // added
}

func (s *sorter) add(t told) error {
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	part := maphash.Comparable(s.seed, [2]string{t.At, t.ID}) % sorterFiles
	if s.files[part] == nil {
		f, err := os.CreateTemp("", "duesday-rebuild-")
		if err != nil {
			return err
		}
		s.files[part], s.out[part] = f, bufio.NewWriterSize(f, 32<<10)
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	s.n++
	return json.NewEncoder(s.out[part]).Encode(t)
}

// each yields what was added to a file. Nothing may be added to it any more.
func (s *sorter) each(part int) iter.Seq2[told, error] {
	return func(yield func(told, error) bool) {
		if s.files[part] == nil {
			return
		}
		err := s.out[part].Flush()
		if err == nil {
			_, err = s.files[part].Seek(0, io.SeekStart)
		}
		if err != nil {
			yield(told{}, err)
			return
		}
		for from := json.NewDecoder(s.files[part]); ; {
			var t told
			err := from.Decode(&t)
			if err == io.EOF || !yield(t, err) || err != nil {
				return
			}
		}
	}
}

func (s *sorter) close() (err error) {
	for _, f := range s.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
