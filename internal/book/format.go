package book

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
)

// A Format is the form of a book.
type Format uint8

// The formats. The zero value is none.
const (
	CSV       Format = iota + 1 // a header, then one subscription a row
	JSONLines                   // one JSON object a line
	Workbench                   // a NoSQL Workbench model with sample data
	Samples                     // the CSV of a model's sample data: a header of attribute names, then one item a row
)

func (f Format) String() string {
	switch f {
	case CSV:
		return "CSV"
	case JSONLines:
		return "JSON lines"
	case Workbench:
		return "NoSQL Workbench model"
	case Samples:
		return "CSV of NoSQL Workbench sample data"
	default:
		return "unknown format"
	}
}

// HeadSize is the length of a file's beginning that Detect needs.
const HeadSize = 64 << 10

// Detect returns the format of a file from its first bytes, or from its name if they do not decide.
// It has no error: a file of another format gets the likeliest one, and Read then names its
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

// isModel reports whether the first JSON object has a member of a Workbench model. The text may be
// cut off anywhere.
func isModel(text []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(text))
	depth := 0
	isName := false // whether the token is a member's name, at depth 1
	for {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			isName = depth == 1
			continue
		case json.Delim('}'), json.Delim(']'):
			if depth--; depth == 0 {
				return false
			}
			isName = depth == 1
			continue
		}
		if depth != 1 {
			continue
		}
		if isName && (token == "DataModel" || token == "ModelName" || token == "ModelMetadata") {
			return true
		}
		isName = !isName
	}
}
