package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/secret"
)

// InFile is the suffix of a variable that contains the path of a secret's file.
const InFile = "_FILE"

// A Secret comes from an environment variable, or from a file that only its owner can read. It never
// comes from the command line, which other users of the machine can read.
type Secret struct {
	secret.Text        // none if there is none, or it has not been read
	File        string // to be read; ""
	source      string // the variable, of a given one
}

func newSecret(env func(string) string, name string) Secret {
	switch text, file := env(name), env(name+InFile); {
	case text != "":
		return Secret{secret.New(text), file, name}
	case file != "":
		return Secret{File: file, source: name + InFile}
	}
	return Secret{}
}

// Given reports whether a secret is configured, even if its file has not been read yet.
func (s *Secret) Given() bool { return s.source != "" }

// check returns an error if both variables are set.
func (s *Secret) check() error {
	if s.IsZero() || s.File == "" {
		return nil
	}
	return fmt.Errorf("%s and %[1]s%s are both set; unset one of them", s.source, InFile)
}

// Read reads the secret if it is in a file. The error names the variable and does not contain the
// secret.
func (s *Secret) Read() error {
	return s.read(func(path string) (string, error) {
		text, err := secret.FromFile(path)
		return text.Reveal(), err
	})
}

func (s *Secret) read(from func(path string) (string, error)) error {
	if s.File == "" || !s.IsZero() {
		return nil
	}
	text, err := from(s.File)
	if err != nil {
		return fmt.Errorf("%s: %w", s.source, err)
	}
	s.Text, s.File = secret.New(text), ""
	return nil
}

// checkChance refuses an easily guessed secret, or one that no header can carry.
func (s *Secret) checkChance(least int) error {
	text := s.Reveal()
	if s.IsZero() || utf8.RuneCountInString(text) >= least &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	return fmt.Errorf("%s must be at least %d random letters, digits and signs without spaces, such as openssl rand "+
		"-hex 32 prints", s.source, least)
}
