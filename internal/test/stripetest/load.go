package stripetest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// mockModule is the module of the specification and of stripe-mock.
const mockModule = "github.com/stripe/stripe-mock"

// errMissing is the reason for a skip: this machine lacks a judge.
var errMissing = errors.New("stripe-mock is not there")

// Load returns the specification of tools.mod, which all tests of a process share.
//
// Without the go command or the module, the test is skipped with a message that names the remedy;
// under CI=true it fails.
func Load(t testing.TB) *Spec {
	t.Helper()
	spec, err := load()
	orSkip(t, err)
	return spec
}

// orSkip ends a test without its judge.
func orSkip(t testing.TB, err error) {
	t.Helper()
	const remedy = "`go mod download -modfile=tools.mod` fetches it"
	switch {
	case err == nil:
	case errors.Is(err, errMissing) && os.Getenv("CI") != "true":
		t.Skipf("SKIPPED, NOT TESTED against Stripe's specification: %v. %s.", err, remedy)
	default:
		t.Fatalf("%v (%s)", err, remedy)
	}
}

// load reads the specification once; later calls get the same answer.
var load = sync.OnceValues(func() (*Spec, error) {
	dir, err := module()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "embedded", "openapi", "spec3.json"))
	if err != nil {
		return nil, fmt.Errorf("stripe-mock without its specification: %w", err)
	}
	return parse(text)
})

// module returns the folder of stripe-mock's source.
var module = sync.OnceValues(func() (string, error) {
	find := []string{"list", "-modfile=tools.mod", "-m", "-f", "{{.Dir}}", mockModule}
	dir, err := goCommand(find...)
	if err == nil && dir == "" {
		if _, err = goCommand("mod", "download", "-modfile=tools.mod", mockModule); err == nil {
			dir, err = goCommand(find...)
		}
	}
	if err == nil && dir == "" {
		err = fmt.Errorf("%w: the go command does not find its source", errMissing)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "\n*** TESTS AGAINST STRIPE'S SPECIFICATION ARE SKIPPED: %v ***\n\n", err)
		return "", err
	}
	return dir, nil
})

// goCommand runs the go command in the root of the repository and returns its output without the
// line's end. Every failure is an errMissing.
func goCommand(args ...string) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	// A workspace does not go together with -modfile, and would decide which module it is.
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: go %s: %v: %s", errMissing, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// repository returns the folder of tools.mod: the working directory or one above it.
func repository() (string, error) {
	start, err := os.Getwd()
	for dir := start; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "tools.mod")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: no tools.mod above %q: %v", errMissing, start, err)
}

func parse(text []byte) (*Spec, error) {
	var d struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
		Paths      map[string]map[string]*operation `json:"paths"`
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("the specification: %w", err)
	}
	s := &Spec{version: d.Info.Version, schemas: d.Components.Schemas, routes: map[int][]*route{},
		objects: map[string][]*schema{}, events: map[string]bool{}}
	for name, one := range s.schemas {
		one.name = name
		if object := one.Properties["object"]; object != nil && len(object.Enum) == 1 {
			if name, ok := object.Enum[0].(string); ok {
				s.objects[name] = append(s.objects[name], one)
			}
		}
	}
	names := regexp.MustCompile(`\{[^}]*\}`)
	fewestNames := func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "{"), strings.Count(b, "{")), cmp.Compare(a, b))
	}
	for _, template := range slices.SortedFunc(maps.Keys(d.Paths), fewestNames) {
		r := &route{template, names.ReplaceAllLiteralString(template, "?*"), map[string]*operation{}}
		for method, op := range d.Paths[template] {
			op.close()
			r.operations[strings.ToUpper(method)] = op
		}
		slashes := strings.Count(template, "/")
		s.routes[slashes] = append(s.routes[slashes], r)
	}
	if err := s.resolve(); err != nil {
		return nil, fmt.Errorf("the specification: %w", err)
	}
	return s, nil
}

// startTimeout allows a busy machine to compile stripe-mock and to read its specification.
const startTimeout = 2 * time.Minute

// Mock returns the URL of a stripe-mock, such as "http://127.0.0.1:34567". The first call of the
// process builds and starts it for all tests of the process. It ends with the process, in every case.
// It has no state, and wants a key sk_test_….
//
// Without it the test is skipped, as by Load.
func Mock(t testing.TB) string {
	t.Helper()
	url, err := mock()
	orSkip(t, err)
	return url
}

// mock starts stripe-mock once; later calls get the same answer.
var mock = sync.OnceValues(func() (string, error) {
	if _, err := module(); err != nil {
		return "", err
	}
	path, err := goCommand("tool", "-modfile=tools.mod", "-n", "stripe-mock")
	if err != nil {
		return "", err
	}
	url, _, err := start(path)
	return url, err
})

// dieWithUs becomes stripe-mock. It leaves a watcher, which kills stripe-mock at the end of
// standard input: then the process with the other end of the pipe has ended. Go has no event for
// the end of all tests.
const dieWithUs = `exec 3<&0 </dev/null
{ cat <&3; kill -9 $$; } >/dev/null 2>&1 &
exec 3<&-
exec "$@"`

// start runs stripe-mock on a free port and returns its URL once it listens, by its standard
// output. An earlier request waits. It runs until held is closed. It also listens for HTTPS, by
// default on a fixed port.
func start(path string) (url string, held io.Closer, err error) {
	cmd := exec.Command("sh", "-c", dieWithUs, "sh", path, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	if held, err = cmd.StdinPipe(); err != nil {
		return "", nil, err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return "", nil, errors.Join(err, held.Close())
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if _, at, ok := strings.Cut(lines.Text(), "Listening for HTTP at address: "); ok {
				address <- at
				break
			}
		}
		close(address)
		_, _ = io.Copy(io.Discard, said) // it must not wait for a reader
		_ = cmd.Wait()
	}()
	select {
	case at, ok := <-address:
		if ok {
			return "http://" + at, held, nil
		}
		err = errors.New("it ended before it listened")
	case <-time.After(startTimeout):
		err = fmt.Errorf("it did not listen within %s", startTimeout)
	}
	return "", nil, errors.Join(fmt.Errorf("stripe-mock does not start: %w", err), held.Close())
}
