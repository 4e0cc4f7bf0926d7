package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/book"
)

// read ranges over the file with a bar of its rows. How many they are is estimated from the bytes
// read, unless they were counted before.
func (m *importer) read(what string, rows int, each func(book.Record, *book.Rejection) error) error {
	file, err := os.Open(m.name)
	if err != nil {
		return err
	}
	defer file.Close()
	bar := m.p.progress(what, int64(rows), nil)
	defer bar.end()
	done := int64(0)
	for rec, bad := range book.Read(bufio.NewReaderSize(file, 1<<20), m.format, m.options) {
		if done++; rows == 0 && done%1024 == 0 {
			if read, err := file.Seek(0, io.SeekCurrent); err == nil {
				bar.total.Store(done * m.size / read)
			}
		}
		bar.done.Store(done)
		if err := each(rec, bad); err != nil {
			return err
		}
	}
	return nil
}

// check reads the file once, reports every bad row and writes nothing to the store, which
// is nil when there is none yet.
func (m *importer) check(ctx context.Context, s *session) (fatal bool, err error) {
	rejected := &rejectedFile{m: m}
	defer func() { err = errors.Join(err, rejected.close(err == nil && !fatal)) }()
	if m.looks = s != nil; m.looks && !m.dryRun {
		there, err := billing.AnyItem(s.engine.Accounts(ctx))
		m.looks = there || err != nil // an error shows again
	}
	n := 0
	m.options.Check = func(sub billing.NewSubscription, given func(string) bool) *billing.FieldError {
		n++
		field := m.judge(ctx, s, sub, given)
		if field != nil {
			m.refused[n] = field
		}
		return field
	}
	err = m.read("rows checked", 0, func(rec book.Record, bad *book.Rejection) error {
		if err := cmp.Or(m.failed, ctx.Err()); err != nil {
			return err
		}
		if bad == nil {
			m.sum.rows++
			return m.count(ctx, s, n, rec)
		}
		if bad.Fatal {
			fatal = true
		} else if bad.Row > m.sum.bad {
			m.sum.bad++
			m.sum.rows++
		}
		m.report(bad.Line, bad.Column, bad.Reason)
		return rejected.add(bad)
	})
	return fatal, err
}

// shownRows is how many bad rows people get, and how many differences and warnings; --json has all.
const shownRows = 50

func (m *importer) report(line int, column, reason string) {
	if m.p.cfg.JSON {
		m.list.add(object{"line", line, "column", column, "reason", reason})
		return
	}
	if m.shown == nil {
		m.shown = m.p.table("LINE", "COLUMN", "REASON")
	}
	switch {
	case m.shown.rows < shownRows:
		m.shown.row(line, column, reason)
	case m.shown.rows == shownRows:
		m.shown.row("…", "", "there are more: all of them with --json, or in the file that --skip-bad writes")
	}
}
