package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/stripefake"
)

// envAhead makes the test binary behave as the product on a machine whose clock is so far ahead.
const envAhead = "DUESDAY_TEST_AHEAD"

// playedAt is when every page is played. The printed output has times of that day.
var playedAt = time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)

// productAhead runs the product as installed under its name. Servers listen on free ports.
func productAhead(ahead time.Duration) int {
	args := append([]string{}, os.Args[1:]...)
	if len(args) > 0 && (args[0] == "serve" || args[0] == rehearsal.StripeFakeName) {
		args = append(args, "--json", "--listen", "127.0.0.1:0")
		if args[0] == "serve" {
			args = append(args, "--api", "127.0.0.1:0", "--pages=")
		}
	}
	syscall.Umask(0o077)
	p := newProgram(os.Getenv, os.Stdin, os.Stdout, os.Stderr, func() time.Time { return time.Now().Add(ahead) })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return p.run(ctx, args)
}

// A player runs the sh blocks of pages in shells, as a reader in terminals. Addresses are the page's
// in a block and in its output, and free ones where the block runs.
type player struct {
	t         *testing.T
	dir       string // where each terminal opens
	start     string // command that each terminal begins with
	ahead     time.Duration
	sh        *shell
	served    string // a pipe that a server writes its line to
	lines     *bufio.Reader
	front     *httptest.Server       // receives webhooks for a server that does not run yet
	webhooks  atomic.Pointer[string] // base of that server
	addresses map[string]string      // address on the page: where it is here
	control   stripefake.Control
}

func newPlayer(t *testing.T) *player {
	t.Helper()
	p := &player{t: t, dir: t.TempDir(), served: filepath.Join(t.TempDir(), "served"),
		ahead: time.Until(playedAt).Round(time.Second)}
	p.front = httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if base := p.webhooks.Load(); base != nil {
			to, _ := url.Parse(*base)
			r.SetURL(to)
		}
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }})
	t.Cleanup(p.front.Close)
	p.addresses = map[string]string{"127.0.0.1:8080": strings.TrimPrefix(p.front.URL, "http://")}
	if err := syscall.Mkfifo(p.served, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(p.served, os.O_RDWR, 0) // it never ends
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	p.lines = bufio.NewReader(f)
	return p
}

// A shell is a terminal. It runs one block after the other.
type shell struct {
	in      *os.File
	answers *bufio.Reader
	dir     string // for the blocks and their output
}

// open opens a terminal.
func (p *player) open() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	s := &shell{dir: p.t.TempDir()}
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in serve|stripe-fake) exec >%s ;; esac\n%s \"$@\"\ncode=$?\n"+
		"[ $code = 0 ] || echo $code >>%s/codes\nexit $code\n", p.served, self, s.dir)
	if err := os.WriteFile(s.dir+"/duesday", []byte(script), 0o700); err != nil {
		p.t.Fatal(err)
	}
	c := exec.Command("sh")
	c.Dir, c.SysProcAttr = p.dir, &syscall.SysProcAttr{Setpgid: true}
	c.Env = []string{"PATH=" + s.dir + ":" + os.Getenv("PATH"), "HOME=" + s.dir, envAhead + "=" + p.ahead.String()}
	in, out := p.pipe(func(r, w *os.File) { c.Stdin, s.in = r, w }), p.pipe(func(r, w *os.File) { c.Stdout, s.answers = w, bufio.NewReader(r) })
	alive := p.pipe(func(_, w *os.File) { c.ExtraFiles = []*os.File{w} }) // ends with the last process of the terminal
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	in[0].Close()
	out[1].Close()
	alive[1].Close()
	p.t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
		in[1].Close()
		_ = c.Wait()
		_, _ = alive[0].Read(make([]byte, 1))
	})
	p.sh = s
	p.run(fmt.Sprintf("date() { case $* in *%%F) echo %s ;; *%%-d) echo %d ;; *) echo $(($(command date +%%s) + %d)) ;; esac; }\n%s",
		playedAt.Format(time.DateOnly), playedAt.Day(), int(p.ahead.Seconds()), p.start))
}

func (p *player) pipe(use func(r, w *os.File)) [2]*os.File {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { r.Close(); w.Close() })
	use(r, w)
	return [2]*os.File{r, w}
}

// run runs a block in the open terminal, and returns its output and the exit codes other than 0. A
// server runs on, and what follows needs another terminal.
func (p *player) run(block string) (out, codes string) {
	p.t.Helper()
	if p.sh == nil {
		p.open()
	}
	s := p.sh
	for page, here := range p.addresses {
		block = strings.ReplaceAll(block, page, here)
	}
	if err := os.WriteFile(s.dir+"/block", []byte(block), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, ": >%s/codes; . %[1]s/block </dev/null >%[1]s/out 2>&1; echo\n", s.dir); err != nil {
		p.t.Fatal(err)
	}
	wait := s.answers
	server := regexp.MustCompile(`(?m)^duesday (serve|stripe-fake)\b`).FindStringSubmatch(block)
	if server != nil {
		wait = p.lines
	}
	line, err := wait.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	if server != nil {
		p.listens(server[1], decode(p.t, line).(map[string]any))
	}
	text, err := os.ReadFile(s.dir + "/out")
	if err != nil {
		p.t.Fatal(err)
	}
	failed, err := os.ReadFile(s.dir + "/codes")
	if err != nil {
		p.t.Fatal(err)
	}
	out = string(text)
	for page, here := range p.addresses {
		out = strings.ReplaceAll(out, here, page)
	}
	return out, strings.Join(strings.Fields(string(failed)), " ")
}

// listens notes where a server listens.
func (p *player) listens(server string, line map[string]any) {
	p.sh = nil
	base, _ := line["base"].(string)
	if server == rehearsal.StripeFakeName {
		p.addresses[rehearsal.StripeFakeAddress] = strings.TrimPrefix(base, "http://")
		p.control = stripefake.Control{Base: base}
		return
	}
	p.webhooks.Store(&base)
	api, _ := line["api_base"].(string)
	p.addresses["127.0.0.1:8081"] = strings.TrimPrefix(api, "http://")
}
