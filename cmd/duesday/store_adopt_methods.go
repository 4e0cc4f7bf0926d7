package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/secret"
)

// A methodFile is a mapping of accounts to payment methods while it is read: CSV with the
// header account,payment_method, or JSON lines with the same names.
type methodFile struct {
	methods map[string]string
	lines   map[string]int // where an account stands first
	errs    []string
}

// A methodLine is one line of the file.
type methodLine struct {
	Account *string `json:"account"`
	Method  *string `json:"payment_method"`
}

const (
	methodHeader    = "account,payment_method"
	maxMethodErrors = 20
)

// readMethods reads the whole file and checks every line; nothing of a file with one bad
// line is used.
func readMethods(name string) (map[string]string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--methods: %w", err)
	}
	methods, errs := parseMethods(content)
	if len(errs) == 0 {
		return methods, nil
	}
	return nil, fmt.Errorf("%s is not used, and nothing was written:\n  %s", name, strings.Join(errs, "\n  "))
}

// parseMethods returns the accounts' methods, at least one, or the errors.
func parseMethods(content []byte) (methods map[string]string, errs []string) {
	content = bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF"))
	f := &methodFile{methods: map[string]string{}, lines: map[string]int{}}
	if text := bytes.TrimLeft(content, " \t\r\n"); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		f.readJSONLines(content)
	} else {
		f.readCSV(content)
	}
	if len(f.errs) == 0 && len(f.methods) == 0 {
		f.fault(1, "no account in it: want %s and one account a line", methodHeader)
	}
	if len(f.errs) == 0 {
		return f.methods, nil
	}
	if more := len(f.errs) - maxMethodErrors; more > 0 {
		f.errs = append(f.errs[:maxMethodErrors], fmt.Sprintf("and %d more", more))
	}
	return nil, f.errs
}

func (f *methodFile) fault(line int, format string, args ...any) {
	f.errs = append(f.errs, fmt.Sprintf("line %d: ", line)+secret.MaskCards(fmt.Sprintf(format, args...)))
}

func (f *methodFile) readCSV(content []byte) {
	r := csv.NewReader(bytes.NewReader(content))
	r.FieldsPerRecord = -1 // counted here, for a better reason
	header, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		f.fault(1, "%v", errors.Unwrap(err))
		return
	}
	index := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		_, twice := index[name]
		switch {
		case name != "account" && name != "payment_method":
			f.fault(1, "unknown column %q: want %s", name, methodHeader)
		case twice:
			f.fault(1, "column %s is twice in the header", name)
		}
		index[name] = i
	}
	if len(index) != 2 && len(f.errs) == 0 {
		f.fault(1, "want the header %s", methodHeader)
	}
	if len(f.errs) > 0 {
		return // the meaning of the columns is not known
	}
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			f.fault(bad.StartLine, "%v", bad.Err)
			return
		}
		line, _ := r.FieldPos(0)
		if len(fields) != 2 {
			f.fault(line, "has %d fields: want 2, %s", len(fields), methodHeader)
			continue
		}
		f.add(line, fields[index["account"]], fields[index["payment_method"]])
	}
}

func (f *methodFile) readJSONLines(content []byte) {
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		var l methodLine
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(&l)
		switch {
		case err != nil:
			f.fault(line, `want {"account": "123", "payment_method": "pm_card_visa"}: %v`, err)
		case d.InputOffset() != int64(len(text)):
			f.fault(line, "want one JSON object a line")
		case l.Account == nil || l.Method == nil:
			f.fault(line, `want both "account" and "payment_method"`)
		default:
			f.add(line, *l.Account, *l.Method)
		}
	}
}

// add checks one line. The same account may stand twice only with the same token.
func (f *methodFile) add(line int, account, token string) {
	account, token = strings.TrimSpace(account), strings.TrimSpace(token)
	err := billing.CheckID("account", account)
	if err == nil {
		err = billing.CheckMethod(token)
	}
	if err != nil {
		f.fault(line, "%v", err)
		return
	}
	if was, twice := f.methods[account]; twice && was != token {
		f.fault(line, "account %s has another payment_method on line %d", account, f.lines[account])
		return
	} else if !twice {
		f.methods[account], f.lines[account] = token, line
	}
}
