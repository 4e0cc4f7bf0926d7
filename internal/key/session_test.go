package key_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
)

func (w *world) signIn(text string) (string, error) {
	defer w.serve.Wait() // for the time of the last use
	session, _, err := w.serve.SignIn(w.t.Context(), text)
	return session.Reveal(), err
}

func (w *world) session(text string) (*key.Key, error) {
	defer w.serve.Wait()
	return w.serve.Session(w.t.Context(), text, true)
}

// TestSession: a session has the scope and name of its key, and the API does not accept it as a key.
func TestSession(t *testing.T) {
	w := newWorld(t)
	_, text := w.create(key.Key{Name: "anna", Scope: key.Charge, Merchant: merchant})
	session, err := w.signIn(text)
	if err != nil {
		t.Fatal(err)
	}
	k, err := w.session(session)
	if err != nil || k.Name != "anna" || k.Scope != key.Charge || k.Merchant != merchant || k.Actor() != "key anna" {
		t.Errorf("the session: %+v, %v", k, err)
	}
	if _, err := w.serve.Find(t.Context(), session); !errors.Is(err, key.ErrRefused) {
		t.Errorf("the session as a key: %v", err)
	}
	for k, err := range w.serve.All(t.Context()) {
		if err != nil || !strings.HasPrefix(k.ID, key.IDPrefix) {
			t.Errorf("listed: %+v, %v", k, err)
		}
	}
	if _, err := w.signIn(session); !errors.Is(err, key.ErrRefused) {
		t.Errorf("signed in with a session: %v", err)
	}
	for i, c := range session {
		other := session[:i] + string(c^1) + session[i+1:]
		if _, err := w.session(other); !errors.Is(err, key.ErrRefused) {
			t.Fatalf("letter %d is another: %v", i, err)
		}
	}
}

// TestSession_Ends: with its key, after a while without use, at the latest after Longest, and by signing out.
func TestSession_Ends(t *testing.T) {
	begin := func() (*world, *key.Key, string) {
		w := newWorld(t)
		k, text := w.create(key.Key{Name: "anna", Scope: key.Read})
		session, err := w.signIn(text)
		if err != nil {
			t.Fatal(err)
		}
		return w, k, session
	}
	ended := func(what string, w *world, session string) {
		t.Helper()
		if _, err := w.session(session); !errors.Is(err, key.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w, k, session := begin()
	if _, err := w.person.Revoke(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(6 * time.Second)
	ended("the key is revoked", w, session)

	w, _, session = begin()
	w.now = w.now.Add(key.Idle)
	ended("nobody has used it", w, session)

	w, _, session = begin()
	for w.now = w.now.Add(key.Idle / 2); w.now.Hour() != 0; w.now = w.now.Add(key.Idle / 2) {
		if _, err := w.session(session); err != nil {
			t.Fatalf("in use, at %v: %v", w.now, err)
		}
	}
	ended("twelve hours", w, session)

	w, _, session = begin()
	for end := w.now.Add(key.Idle); w.now.Before(end); w.now = w.now.Add(time.Minute) {
		if _, err := w.serve.Session(t.Context(), session, false); err != nil {
			t.Fatalf("a page reloads itself, at %v: %v", w.now, err)
		}
		w.serve.Wait()
	}
	ended("only a page has used it", w, session)

	w, _, session = begin()
	for range 2 {
		if err := w.serve.SignOut(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	ended("signed out", w, session)
	w, _, session = begin()
	if err := w.serve.SignOut(t.Context(), session[:len(session)-1]+"_"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.session(session); err != nil {
		t.Errorf("somebody without the secret signed out: %v", err)
	}
}

// TestLink: a link signs in once, within ten minutes, with scope admin. It is neither a key nor a session.
func TestLink(t *testing.T) {
	w := newWorld(t)
	link, err := w.person.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := link.Reveal()
	if _, err := w.session(text); !errors.Is(err, key.ErrRefused) {
		t.Errorf("the link as a session: %v", err)
	}
	session, err := w.signIn(text)
	if err != nil {
		t.Fatal(err)
	}
	if k, err := w.session(session); err != nil || k.Scope != key.Admin || k.Actor() != "operator" {
		t.Errorf("the session: %+v, %v", k, err)
	}
	if _, err := w.signIn(text); !errors.Is(err, key.ErrRefused) {
		t.Errorf("the second time: %v", err)
	}
	late, err := w.person.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(key.LinkLife)
	if _, err := w.signIn(late.Reveal()); !errors.Is(err, key.ErrRefused) {
		t.Errorf("ten minutes later: %v", err)
	}
}
