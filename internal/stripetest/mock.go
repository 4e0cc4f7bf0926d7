package stripetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// startTimeout allows a busy machine to compile stripe-mock and to read its specification.
const startTimeout = 2 * time.Minute

// Mock returns the URL of a stripe-mock, such as "http://127.0.0.1:34567". The first call of the
// process builds and starts it for all tests of the process. It ends with the process, in every
// case. It has no state, and wants a key in the form "sk_test_" and some letters.
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
