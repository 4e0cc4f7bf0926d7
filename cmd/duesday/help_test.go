package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/schema/iam"
	"github.com/duesday/duesday/internal/server"
)

// every calls f for every command of ours below c.
func every(c *cobra.Command, f func(*cobra.Command)) {
	for _, child := range c.Commands() {
		if child.Name() != "help" && child.Name() != "completion" {
			f(child)
			every(child, f)
		}
	}
}

// TestHelp holds that every command is in the root's help, and has a short text in the imperative, its
// flags in its help, and examples that can be parsed.
func TestHelp(t *testing.T) {
	t.Parallel()
	p := newProgram(func(string) string { return "" }, nil, nil, nil, nil)
	root := p.root()
	lines := strings.Split(root.Long, "\n")
	for _, c := range root.Commands() {
		if !c.Hidden && !slices.ContainsFunc(lines, func(line string) bool {
			names, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
			return strings.HasPrefix(line, "More:") && strings.Contains(line, c.Name()) ||
				slices.Contains(strings.Split(names, ", "), c.Name())
		}) {
			t.Errorf("%s: not in the root's help", c.Name())
		}
	}
	leaves := 0
	every(root, func(c *cobra.Command) {
		first, _, _ := strings.Cut(c.Short, " ")
		if first == "" || first[0] < 'A' || first[0] > 'Z' || strings.HasSuffix(c.Short, ".") ||
			strings.HasSuffix(first, "s") && first != "Process" || len(c.Short) > 80 {
			t.Errorf("%s: %q: want a line in the imperative", c.CommandPath(), c.Short)
		}
		if c.HasSubCommands() {
			return
		}
		leaves++
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { contains(t, c.UsageString(), "--"+f.Name+" ") })
		if c.Example == "" {
			t.Errorf("%s: no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			example(t, root, c, strings.TrimSpace(line))
		}
	})
	for path := range helpTexts() {
		_, below, _ := strings.Cut(path, " ")
		if c, rest, err := root.Find(strings.Fields(below)); err != nil || len(rest) > 0 || path != "" && c.CommandPath() != path {
			t.Errorf("help.txt has a section of %q, which is no command", path)
		}
	}
	if leaves < 50 {
		t.Errorf("only %d commands were looked at", leaves)
	}
}

func TestMan(t *testing.T) {
	c := newCLI(t)
	c.must("man", "man1")
	page, err := os.ReadFile(c.path("man1/duesday-run-payments.1"))
	if err != nil || !strings.Contains(string(page), `.TH "DUESDAY\-RUN\-PAYMENTS" 1`) {
		t.Errorf("%v, %.200s", err, page)
	}
}

// example parses one line: of c, if it begins like that, or of another command, or of another
// program beside it.
func example(t *testing.T, root, c *cobra.Command, line string) {
	t.Helper()
	at := strings.LastIndex(" "+line, " duesday ")
	if at < 0 {
		return
	}
	line = line[at+len("duesday "):]
	line, _, _ = strings.Cut(line, " > ")
	args := words(line)
	to, rest, err := root.Find(args)
	if err != nil || to.HasSubCommands() {
		t.Errorf("%s: the example %q is of no command: %v", c.CommandPath(), line, err)
		return
	}
	known := func(name string) *pflag.Flag {
		if f := to.Flags().Lookup(name); f != nil {
			return f
		}
		return root.PersistentFlags().Lookup(name)
	}
	positional := 0
	for i := 0; i < len(rest); i++ {
		name, isFlag := strings.CutPrefix(rest[i], "--")
		if !isFlag {
			positional++
			continue
		}
		name, _, valued := strings.Cut(name, "=")
		f := known(name)
		switch {
		case f == nil:
			t.Errorf("%s: the example %q has an unknown flag --%s", c.CommandPath(), line, name)
		case f.Value.Type() != "bool" && !valued:
			i++
		}
	}
	if to.Args != nil {
		if err := to.Args(to, make([]string, positional)); err != nil {
			t.Errorf("%s: the example %q: %v", c.CommandPath(), line, err)
		}
	}
}

// words splits a line at spaces that are not within single quotes.
func words(line string) (list []string) {
	quoted := false
	for i, part := range strings.Split(line, "'") {
		if quoted = i%2 == 1; quoted {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}

// TestHelp_GlobalFlagsOnce: help flags lists them, and no other help does. The root has at most 41 lines.
func TestHelp_GlobalFlagsOnce(t *testing.T) {
	c := newCLI(t)
	root := c.must("--help")
	equal(t, "help", []string{c.must(), c.must("help")}, []string{root, root})
	if n := strings.Count(root, "\n"); n > 41 || strings.Contains(root, "--") {
		t.Errorf("%d lines:\n%s", n, root)
	}
	contains(t, c.must("help", "flags"), "before or after its name:\n\n      --cache MIB", "--json", "$DUESDAY_LOG_LEVEL")
	equal(t, "alias", c.must("sub", "list", "--help"), c.must("help", "subscription", "list"))
	for _, args := range [][]string{{"run", "payments", "--help"}, {"store", "--help"}, {"serve", "--help"}} {
		out := c.must(args...)
		contains(t, out, "Global flags, such as --store and --json: duesday help flags")
		if strings.Contains(out, "--log-level") {
			t.Errorf("%v has the global flags again:\n%s", args, out)
		}
	}
}

// TestHelp_Names: the names that help.txt repeats are those of the code.
func TestHelp_Names(t *testing.T) {
	texts := helpTexts()
	for path, names := range map[string][]string{
		"duesday mail preview": {strings.Join(mail.Kinds(), ", ")},
		"duesday poll":         {config.EnvStripeKey, config.EnvStripeAPIBase, config.EnvAPIKey, config.EnvPollSecret},
		"duesday serve": {"  " + server.HookPath + " ", "  " + server.ConnectPath + " ", config.EnvStripeKey,
			config.EnvWebhookSecrets, config.EnvConnectSecrets, config.EnvPollSecret, "  " + httpapi.PollPath + " "},
		"duesday stripe-fake": {"http://" + rehearsal.StripeFakeAddress + "/v1/", rehearsal.UseOfStripeFake("http://" + rehearsal.StripeFakeAddress), rehearsal.StripeFakeKey,
			server.ConnectPath},
		"duesday demo":       {rehearsal.DemoFolder},
		"duesday schema iam": iam.Names(),
	} {
		contains(t, texts[path], names...)
	}
}

func TestHelp_Version(t *testing.T) {
	c := newCLI(t)
	equal(t, "--version", c.must("--version"), c.must("version"))
}

// TestCompletion asks for the values of flags and arguments as a shell does.
func TestCompletion(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))
	for _, x := range []struct{ line, want string }{
		{"subscription list --status |", "active paused past_due parked canceled completed"},
		{"receipt refund 1/1 --reason |", "duplicate fraudulent requested_by_customer"},
		{"export receipts --format |", "csv jsonl"},
		{"verify --log-level |", "debug info warn error"},
		{"account show |", "1 2 3 4 5"},
		{"account attach 2|", "2"},
		{"subscription list 2|", "2"},
		{"period list 2|", "2"},
		{"subscription show 1|", "1/1 1/2"},
		{"subscription show 1/1 |", ""},
		{"purchase show |", ""},
		{"account show --store mem: |", ""},
	} {
		line, _ := strings.CutSuffix(x.line, "|")
		args := strings.Fields(line)
		if strings.HasSuffix(line, " ") {
			args = append(args, "")
		}
		r := c.run(append([]string{"__complete"}, args...)...)
		values, _, _ := strings.Cut(r.out, ":")
		if got := strings.Join(strings.Fields(values), " "); got != x.want {
			t.Errorf("%s: %q, want %q", x.line, got, x.want)
		}
	}
}

// TestPainted: states have colours on a terminal, and columns stay where they are. Nothing else has any.
func TestPainted(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclined")
	c.must("charging", "off")
	paint := regexp.MustCompile("\x1b\\[[0-9]+m")
	environment := map[string]string{}
	shown := func(line string) string {
		t.Helper()
		var out, errors strings.Builder
		p := newProgram(func(name string) string { return environment[name] }, nil, &out, &errors, c.clock.Now)
		p.Dir, p.TTY = c.dir, func(w io.Writer) bool { return w == &out }
		p.run(t.Context(), strings.Fields(line))
		plain, free := c.run(strings.Fields(line)...).out, regexp.MustCompile("[0-9.]+") // the disk's changes
		equal(t, line+" without colours", free.ReplaceAllString(paint.ReplaceAllString(out.String(), ""), ""),
			free.ReplaceAllString(plain, ""))
		equal(t, line+": errors", paint.FindString(errors.String()), "")
		return out.String()
	}
	contains(t, shown("status --all"), "\x1b[31mWRONG\x1b[0m", "\x1b[32mok\x1b[0m", "\x1b[39mSTATE\x1b[0m")
	contains(t, shown("subscription list"), "\x1b[32mactive\x1b[0m")
	contains(t, shown("subscription show 1/1"), "\x1b[32mactive\x1b[0m")
	for _, line := range []string{"status --json", "export subscriptions", "subscription show 1/1 --json"} {
		equal(t, line, paint.FindString(shown(line)), "")
	}
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		environment = map[string]string{name: value}
		equal(t, name, paint.FindString(shown("status --all")), "")
	}
}
