// Package manual generates man pages from the commands' help. It does not read help texts itself: the caller
// fills in the commands.
package manual

import (
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands yields the command and all commands below it that are not hidden, parents first.
func Commands(c *cobra.Command) iter.Seq[*cobra.Command] {
	return func(yield func(*cobra.Command) bool) {
		var walk func(c *cobra.Command) bool
		walk = func(c *cobra.Command) bool {
			if !yield(c) {
				return false
			}
			for _, child := range c.Commands() {
				if child.IsAvailableCommand() && !walk(child) {
					return false
				}
			}
			return true
		}
		walk(c)
	}
}

// A Flag is what a page says of a flag of a command.
type Flag struct{ Name, Value, Usage string }

// Flags returns the command's own flags in alphabetical order, without help.
func Flags(c *cobra.Command) (list []Flag) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0s" {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		list = append(list, Flag{"--" + f.Name, value, usage})
	})
	return list
}

// Unindent returns the text without the spaces around its lines.
func Unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

// Pages returns the man pages of section 1 by their file name, such as duesday-run-payments.1. The
// version stands in their footer.
func Pages(root *cobra.Command, version string) map[string]string {
	pages := map[string]string{}
	for c := range Commands(root) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		var b strings.Builder
		fmt.Fprintf(&b, ".TH %s 1 \"\" %s\n.SH NAME\n%s \\- %s\n", quote(strings.ToUpper(name)), quote(root.Name()+" "+version),
			escape(name), escape(c.Short))
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escape(c.UseLine()))
		if c.Long != "" {
			fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", paragraphs(c.Long))
		}
		if list := Flags(c); len(list) > 0 {
			b.WriteString(".SH OPTIONS\n")
			for _, f := range list {
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s\n", escape(f.Name), escape(f.Value), escape(f.Usage))
			}
		}
		if c.Example != "" {
			fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", escape(Unindent(c.Example)))
		}
		if related := related(c); len(related) > 0 {
			fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(related, ",\n"))
		}
		pages[name+".1"] = b.String()
	}
	return pages
}

// related names the pages of the command's parent and of the commands directly below it.
func related(c *cobra.Command) (list []string) {
	add := func(c *cobra.Command) {
		list = append(list, `\fB`+escape(strings.ReplaceAll(c.CommandPath(), " ", "-"))+`\fR(1)`)
	}
	if c.HasParent() {
		add(c.Parent())
	}
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			add(child)
		}
	}
	return list
}

// paragraphs keeps an indented or listed line on its own line, and lets man fill the rest.
func paragraphs(text string) string {
	lines := strings.Split(escape(text), "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".PP"
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, `\- `):
			lines[i] = ".br\n" + strings.TrimLeft(line, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// escape writes text so that roff prints it as it is: a line that begins with . or ' is no request,
// and a hyphen can be searched for and pasted.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	var b strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r > unicode.MaxASCII { // a formatter may read files as Latin-1
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func quote(text string) string { return `"` + escape(text) + `"` }
