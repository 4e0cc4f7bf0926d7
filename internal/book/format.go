package book

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
)

// A Format is the form of a book.
type Format uint8

// The formats. The zero value means an unknown format.
const (
	CSV       Format = iota + 1 // a header, then one subscription a row
	JSONLines                   // one JSON object a line
	Workbench                   // a NoSQL Workbench model with sample data
	Samples                     // the CSV of a model's sample data: a header of attribute names, then one item a row
	Prices                      // a header with sku, amount, and perhaps currency and name, then one price a row
)

// HeadSize is the number of bytes that Detect needs from the beginning of a file.
const HeadSize = 64 << 10

// Detect returns the format of a file from its first bytes, or from its name if they do not decide.
// For a file in another format, it returns the most likely format, and Read then reports the
// problem.
func Detect(head []byte, name string) Format {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(byteOrderMark)), " \t\r\n")
	if len(text) > 0 {
		switch text[0] {
		case '{':
			if isModel(text) {
				return Workbench
			}
			return JSONLines
		case '[':
			return JSONLines
		}
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jsonl", ".ndjson", ".json":
		return JSONLines
	}
	if isSampleHeader(text) {
		return Samples
	}
	return CSV
}

// isModel reports whether the first JSON object, perhaps cut off, has a Workbench model's member.
func isModel(text []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return false
	}
	for dec.More() {
		name, err := dec.Token()
		if name == "DataModel" || name == "ModelName" || name == "ModelMetadata" {
			return true
		}
		var skipped json.RawMessage
		if err != nil || dec.Decode(&skipped) != nil {
			return false
		}
	}
	return false
}

const (
	byteOrderMark = "\xEF\xBB\xBF"
	maxRow        = 1 << 20 // bytes of a row, a line or an item
	chunk         = 64 << 10
)

var (
	errTooLong = errors.New("a row is longer than 1 MiB; in a CSV file, the cause is often a quote that is not closed")
	errUTF16   = errors.New("the file is UTF-16; save it as UTF-8")
	errEmpty   = errors.New("the file is empty")
)

// A source hands a file's bytes to a parser, without a byte order mark. It keeps the bytes of the
// present row, to show them, and bounds the length of a row. Offsets count from after the mark.
type source struct {
	r      *bufio.Reader
	window []byte // from offset start on: the present row and bytes read ahead
	buf    []byte // memory of window
	start  int64
	line   int // of start, from 1
}

func newSource(r io.Reader) (*source, error) {
	br := bufio.NewReaderSize(r, chunk)
	head, err := br.Peek(len(byteOrderMark))
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case len(head) == 0:
		return nil, errEmpty
	case bytes.HasPrefix(head, []byte("\xFF\xFE")), bytes.HasPrefix(head, []byte("\xFE\xFF")):
		return nil, errUTF16
	case string(head) == byteOrderMark:
		br.Discard(len(byteOrderMark)) // cannot fail: it has been peeked at
		if _, err := br.Peek(1); err == io.EOF {
			return nil, errEmpty
		}
	}
	return &source{r: br, line: 1}, nil
}

// Read returns errTooLong if the present row is over the bound.
func (s *source) Read(p []byte) (int, error) {
	if len(s.window) > maxRow+2*chunk { // the parser reads ahead by a chunk
		return 0, errTooLong
	}
	n, err := s.r.Read(p)
	if cap(s.window)-len(s.window) < n {
		s.buf = append(append(s.buf[:0], s.window...), p[:n]...)
		s.window = s.buf
	} else {
		s.window = append(s.window, p[:n]...)
	}
	return n, err
}

// upTo returns the bytes from the row's start to the offset, valid until the next Read or advance.
func (s *source) upTo(end int64) []byte { return s.window[:end-s.start] }

// advance makes the offset the start of the next row.
func (s *source) advance(to int64) {
	row := s.upTo(to)
	s.line += bytes.Count(row, []byte{'\n'})
	s.window = s.window[len(row):]
	s.start = to
}
