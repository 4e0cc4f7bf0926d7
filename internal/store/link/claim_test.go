package link_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
)

// A claiming store keeps claims beside its items.
type claiming struct {
	store.Store
	*store.Claims
}

// join connects a client to a holder of the store. end kills the client; stop ends the holder in
// order.
func join(t *testing.T, held store.Store, cut func(near, far net.Conn) (net.Conn, net.Conn)) (c *link.Client,
	end func(), stop func(), err error) {
	t.Helper()
	near, far := net.Pipe()
	if cut != nil {
		near, far = cut(near, far)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- link.Serve(ctx, far, held, options()) }()
	c, err = link.Connect(t.Context(), near, options())
	t.Cleanup(func() {
		_ = near.Close()
		<-served
	})
	return c, func() { _ = near.Close() }, stop, err
}

// owner returns by whom the name is claimed; "" by nobody.
func owner(t *testing.T, s store.Claimer, name string) string {
	t.Helper()
	_, _, err := s.Claim(t.Context(), name, "")
	if e, ok := errors.AsType[*store.ClaimedError](err); ok {
		return e.By
	}
	if err != nil {
		t.Error(err)
	}
	return ""
}

func isLost(lost <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-lost:
		return true
	default:
		return false
	}
}

// TestClaim: clients and the holder exclude each other. A claim ends by its release, and with its
// connection: a killed client blocks nobody.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := claiming{openMemory(t), new(store.Claims)}
		a, killA, _, err := join(t, held, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _, stopB, err := join(t, held, nil)
		if err != nil {
			t.Fatal(err)
		}
		lostA, releaseA, err := a.Claim(t.Context(), "run", "a")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = b.Claim(t.Context(), "run", "b")
		if e, ok := errors.AsType[*store.ClaimedError](err); !ok || e.By != "a" || e.Name != "run" {
			t.Errorf("Claim by b = %v", err)
		}
		if by := owner(t, held, "run"); by != "a" {
			t.Errorf("the holder sees it claimed by %q", by)
		}
		if _, _, err := a.Claim(t.Context(), "other", "a"); err != nil {
			t.Error(err)
		}
		releaseA()
		lostB, _, err := b.Claim(t.Context(), "run", "b")
		if err != nil {
			t.Errorf("after the release: %v", err)
		}
		releaseA() // again: it is b's now
		if by := owner(t, a, "run"); by != "b" {
			t.Errorf("after a second release it is claimed by %q", by)
		}
		if isLost(lostA) || isLost(lostB) {
			t.Error("a claim is lost while its connection stands")
		}
		killA()
		if !isLost(lostA) || owner(t, held, "other") != "" || owner(t, held, "run") != "b" {
			t.Error("the claims of a killed client: they have not ended, or another one's have")
		}
		if _, _, err := a.Claim(t.Context(), "other", "a"); !errors.Is(err, link.ErrLost) {
			t.Errorf("Claim without a connection = %v", err)
		}
		stopB() // the holder ends in order
		if !isLost(lostB) {
			t.Error("the client does not learn of the holder's end")
		}
		if by := owner(t, held, "run"); by != "" {
			t.Errorf("claimed by %q after the end", by)
		}
	})
}

// TestClaim_Cut cuts the connection at every byte of a claim and its release, on both sides. The
// client knows whether it has the claim, and after the cut nobody has it.
func TestClaim_Cut(t *testing.T) {
	for _, side := range []string{"client", "holder"} {
		seen := map[string]int{}
		for at, whole := int64(1), false; !whole; at++ {
			synctest.Test(t, func(t *testing.T) {
				held := claiming{openMemory(t), new(store.Claims)}
				c, kill, _, err := join(t, held, func(near, far net.Conn) (net.Conn, net.Conn) {
					cut := &short{Conn: near}
					cut.left.Store(at)
					if side == "holder" {
						cut.Conn = far
						return near, cut
					}
					return cut, far
				})
				if err != nil {
					seen["greeting"]++
					return
				}
				lost, release, err := c.Claim(t.Context(), "run", "c")
				synctest.Wait()
				by := owner(t, held, "run")
				switch {
				case err == nil && !isLost(lost) && by != "c":
					t.Errorf("cut of the %s after %d bytes: a claim is neither lost nor held", side, at)
				case err == nil:
					seen["claimed"]++
				case !errors.Is(err, link.ErrLost) || by != "":
					t.Errorf("cut of the %s after %d bytes: %v, claimed by %q", side, at, err, by)
				default:
					seen["refused"]++
				}
				if err == nil {
					release()
					synctest.Wait()
					if by := owner(t, held, "run"); by != "" {
						t.Errorf("cut of the %s after %d bytes: claimed by %q after the release", side, at, by)
					}
					whole = !isLost(lost)
				}
				kill()
			})
		}
		t.Logf("%s: %v", side, seen)
		if seen["claimed"] == 0 || seen["refused"] == 0 {
			t.Errorf("%s: not every kind of cut was met: %v", side, seen)
		}
	}
}

// TestClaim_NoClaims: a holder whose store has no claims says so.
func TestClaim_NoClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _, err := join(t, openMemory(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Claim(t.Context(), "run", "c"); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Claim = %v", err)
		}
	})
}
