package stripetest

import (
	"net"
	"strings"
	"testing"
	"time"
)

// TestMockDiesWithItsProcess: the pipe to it is closed, as it is by the end of a process,
// and it does not outlive that.
func TestMockDiesWithItsProcess(t *testing.T) {
	ours := Mock(t)
	path, err := goCommand("tool", "-modfile=tools.mod", "-n", "stripe-mock")
	if err != nil {
		t.Fatal(err)
	}
	theirs, held, err := start(path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(theirs, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1)) // until the other side is gone
	if late, ok := err.(net.Error); err == nil || ok && late.Timeout() {
		t.Fatalf("%s lives on: %v", theirs, err)
	}
	// A process that ends closes what it has one by one: whoever it has accepted meanwhile is let
	// go of, too.
	for tries := 0; ; tries++ {
		again, err := net.Dial("tcp", strings.TrimPrefix(theirs, "http://"))
		if err != nil {
			break
		}
		if err := again.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, err = again.Read(make([]byte, 1))
		_ = again.Close()
		if late, ok := err.(net.Error); err == nil || ok && late.Timeout() || tries == 100 {
			t.Fatalf("%s still listens: %v", theirs, err)
		}
	}
	if got := Mock(t); got != ours {
		t.Errorf("the second call started another: %s, then %s", ours, got)
	}
	still, err := net.Dial("tcp", strings.TrimPrefix(ours, "http://"))
	if err != nil {
		t.Fatalf("ours went with it: %v", err)
	}
	_ = still.Close()
}

func TestMockThatDoesNotStart(t *testing.T) {
	if _, _, err := start("true"); err == nil || !strings.Contains(err.Error(), "it ended before it listened") {
		t.Errorf("got %v", err)
	}
}
