package key

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A session of the operator's pages is a row beside the keys: a Key with its own ID and secret, and with
// the scope and merchant of the key that a person has signed in with. The API accepts no session. A link
// is such a row that can be exchanged for a session once.
const (
	sessionPrefix = "ds_"
	linkPrefix    = "dl_"
)

// sessionForm is that of a session or link.
var sessionForm = regexp.MustCompile(`^(d[sl]_[a-z2-7]{10})_([0-9a-f]{64})$`)

// How long a session lasts: without a request, and at most. A link waits for its exchange.
const (
	Idle     = 30 * time.Minute
	Longest  = 12 * time.Hour
	LinkLife = 10 * time.Minute
)

// Link stores a link that signs its bearer in once, with scope admin, and returns its text.
func (r *Ring) Link(ctx context.Context) (secret.Text, error) {
	k := &Key{Name: "operator", Scope: Admin, Created: r.now()}
	k.Expires = k.Created.Add(LinkLife)
	text := k.name(linkPrefix)
	return text, r.o.Store.Commit(ctx, r.put(k))
}

// put writes a session or link, which expires without a trace.
func (r *Ring) put(k *Key) store.Write {
	it := k.item()
	it.Set(schema.TTL, store.Int(k.Expires.Unix()+1))
	return store.Put(r.o.Table, it, store.Absent())
}

// SignIn stores a session for the bearer of the text of a key or a link, and returns the session's text. It
// returns ErrRefused for a text that is not valid, or no longer.
func (r *Ring) SignIn(ctx context.Context, text string) (secret.Text, *Key, error) {
	s, writes := &Key{Created: r.now()}, []store.Write(nil)
	k, err := (*Key)(nil), error(nil)
	if parts := sessionForm.FindStringSubmatch(text); parts != nil {
		k, err = r.bearer(ctx, parts, linkPrefix, true)
		if err == nil {
			writes = append(writes, store.Delete(r.o.Table, at(k.ID)))
		}
	} else if k, err = r.Find(ctx, text); err == nil {
		s.of = k.ID
	}
	if err != nil {
		return secret.Text{}, nil, err
	}
	s.Name, s.Scope, s.Merchant, s.Expires = k.Name, k.Scope, k.Merchant, s.Created.Add(Longest)
	session := s.name(sessionPrefix)
	err = r.o.Store.Commit(ctx, append(writes, r.put(s))...)
	if errors.Is(err, store.ErrConflict) && len(writes) > 0 { // another request was faster
		err = fmt.Errorf("%w: the link is used", ErrRefused)
	}
	return session, s, err
}

// Session returns the session with the text, or ErrRefused. It ends with its key, when no request uses it
// for Idle, and after Longest. A request without a person, from a page that reloads itself, does not use it.
func (r *Ring) Session(ctx context.Context, text string, person bool) (*Key, error) {
	parts := sessionForm.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("%w: it does not have the form of a session", ErrRefused)
	}
	k, err := r.bearer(ctx, parts, sessionPrefix, person)
	if err != nil || k.of == "" {
		return k, err
	}
	of, err := r.read(ctx, k.of, r.now())
	if err = ignoreAbsent(err); err == nil && (of == nil || !of.key.Active(r.now())) {
		err = fmt.Errorf("%w: the session's key is not valid any more", ErrRefused)
	}
	return k, err
}

// bearer returns the valid session or link whose ID and secret are in parts. With use, it notes the session's use.
func (r *Ring) bearer(ctx context.Context, parts []string, prefix string, use bool) (*Key, error) {
	now := r.now()
	c, err := r.read(ctx, parts[1], now)
	if err = ignoreAbsent(err); err != nil {
		return nil, err
	}
	if c.refuses(parts[2]) || !c.key.Active(now) || parts[1][:len(prefix)] != prefix {
		return nil, &Refusal{parts[1], "it does not exist, or has expired", false}
	}
	if prefix == linkPrefix {
		return c.key, nil
	}
	r.mu.Lock()
	used := c.used
	r.mu.Unlock()
	if used.Before(c.key.Created) {
		used = c.key.Created
	}
	if !isWithin(Idle, used, now) {
		return nil, &Refusal{parts[1], "nobody has used it for a while", true}
	}
	if use {
		r.note(ctx, c, now)
	}
	return c.key, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// SignOut ends the session with the text, if there is one.
func (r *Ring) SignOut(ctx context.Context, text string) error {
	parts := sessionForm.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	c, err := r.read(ctx, parts[1], r.now())
	if err = ignoreAbsent(err); err != nil || c.refuses(parts[2]) {
		return err
	}
	err = r.o.Store.Commit(ctx, store.Delete(r.o.Table, at(parts[1])))
	r.mu.Lock()
	delete(r.cache, parts[1])
	r.mu.Unlock()
	if errors.Is(err, store.ErrConflict) { // it has ended meanwhile
		return nil
	}
	return err
}
