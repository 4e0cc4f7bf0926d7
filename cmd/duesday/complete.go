package main

import (
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/config"
)

// The bounds of a completion: it must answer at once, in a book of any size.
const (
	completedRows = 2000 // read
	completedIDs  = 50   // offered
)

// completion returns how the arguments of a command are completed, by its usage.
func (p *program) completion(use string) cobra.CompletionFunc {
	_, arguments, _ := strings.Cut(use, " ")
	switch word, _, _ := strings.Cut(arguments, " "); word {
	case subscriptionName:
		return p.completeIDs(func(s *session, cmd *cobra.Command) iter.Seq2[string, error] {
			return mapped(s.engine.Subscriptions(cmd.Context()), func(s *billing.Subscription) string { return s.Name.String() })
		})
	case "ACCOUNT", "ACCOUNT[/SUBSCRIPTION]":
		return p.completeIDs(func(s *session, cmd *cobra.Command) iter.Seq2[string, error] {
			return mapped(s.engine.Accounts(cmd.Context()), func(a *billing.Account) string { return a.ID })
		})
	case "FILE":
		return nil // the shell completes file names
	}
	return cobra.NoFileCompletions
}

// completeIDs offers the first ids of an embedded store with the word as prefix. It offers none
// if another process has the store open: a completion waits for nobody.
func (p *program) completeIDs(ids func(*session, *cobra.Command) iter.Seq2[string, error]) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		var err error
		if p.cfg, err = config.New(p.flags, p.env); err != nil || len(args) > 0 || folderOf(p.cfg.Store) == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_ = p.with(cmd.Context(), need{read: true}, func(s *session) error { // a failure offers nothing
			rows := 0
			for id, err := range ids(s, cmd) {
				if rows++; err != nil || rows > completedRows || len(found) >= completedIDs {
					return err
				}
				if strings.HasPrefix(id, word) {
					found = append(found, id)
				}
			}
			return nil
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func mapped[T any](seq iter.Seq2[T, error], of func(T) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for v, err := range seq {
			text := ""
			if err == nil {
				text = of(v)
			}
			if !yield(text, err) {
				return
			}
		}
	}
}
