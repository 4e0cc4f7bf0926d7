package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/store"
)

// A Change is a POST that changes something. The caller chooses an idempotency key for it.
type Change struct {
	// Object is the path of the object that is created or changed, such as accounts/123. Do may set
	// call.Of(ctx).Object before its first commit instead.
	Object string
	Asked  any // decoded body; nil: none

	// Do makes the change. Its first commit through call.Commit also stores the row of the idempotency
	// key, so a Do that is refused must not commit.
	Do func(ctx context.Context) (status int, answer any, err error)

	// Again resumes a change that was cut off behind its first commit. It makes no further attempt, and
	// returns the object as it is now, without its secrets. The context's call repeats the row's call, so its
	// commits store no row. If row.Hash is "", the key came from a command line: Again must then compare the
	// request with row.Item in the function that it passes to call.Begin, or the key counts as another's.
	Again func(ctx context.Context, row *call.Row) (answer any, err error)
}

// KeyHeader is the header of the caller's idempotency key.
const KeyHeader = "Idempotency-Key"

const (
	// ReplayedHeader is the header of an answer to a repeat.
	ReplayedHeader = "Idempotent-Replayed"
	runningWait    = 10 * time.Second // for another request with the same key
	maxKey         = 255
)

// idempotencyForm is the form of an idempotency key: printable ASCII.
var idempotencyForm = regexp.MustCompile(`^[ -~]{1,255}$`)

// IdempotencyKey returns the idempotency key of a request, which must have exactly one.
func (r *Request) IdempotencyKey() (string, error) {
	keys := r.Header.Values(KeyHeader)
	if len(keys) != 1 || !idempotencyForm.MatchString(keys[0]) {
		return "", Problemf(http.StatusBadRequest, codeUsedKey, "the request must have one %s header with 1 to %d printable ASCII characters",
			KeyHeader, maxKey)
	}
	return keys[0], nil
}

// CheckKey returns a field.Error for the parameter idempotency_key unless the text can be such a key.
func CheckKey(text string) error {
	if !idempotencyForm.MatchString(text) {
		return field.Wrong("idempotency_key", fmt.Sprintf("must be 1 to %d printable ASCII characters", maxKey))
	}
	return nil
}

// KeyUsed returns the answer to an idempotency key that belongs to another request, which was about the
// object.
func KeyUsed(object string) error {
	return &Problem{Status: http.StatusUnprocessableEntity, Code: codeUsedKey, Object: object,
		Detail: "another request used this idempotency key; repeat that request as it was, or choose a new key"}
}

// Once answers a Change, at most once for each idempotency key of the caller. A repeat gets the object as
// it is now. A request with the same key as one that this process is answering waits for that answer.
func (s *Server) Once(w http.ResponseWriter, r *Request, c Change) error {
	text, err := r.IdempotencyKey()
	if err != nil {
		return err
	}
	asked, err := json.Marshal(c.Asked)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(r.Method + " " + r.URL.Path + "\n" + string(asked)))
	first := *call.Of(r.Context())
	first.Key, first.Caller, first.Hash, first.Object = text, r.Key.Merchant, hex.EncodeToString(sum[:16]), c.Object
	k := first
	release, err := s.running.hold(r.Context(), k.Caller+"\x00"+k.Key)
	if err != nil {
		return err
	}
	defer release()
	row, err := k.Find(r.Context(), s.o.Store)
	if err == nil {
		return s.again(w, r, c, &k, row)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	ctx := call.With(r.Context(), &k)
	status, answer, err := c.Do(ctx)
	if err == nil && k.Repeats() != nil { // another process has stored the row in the meantime
		return s.again(w, r, c, &k, k.Repeats())
	}
	if err == nil && !k.Stored() {
		err = call.Commit(ctx, s.o.Store) // there was nothing to change
	}
	if err != nil && !k.Stored() { // another process may have been faster, so that its effect was in the way
		if row, found := first.Find(ctx, s.o.Store); found == nil {
			return s.again(w, r, c, &first, row)
		}
	}
	if err != nil {
		return err
	}
	if status == http.StatusCreated && strings.HasPrefix("/v1/"+k.Object, r.URL.Path) { // not of a receipt: its object is the subscription
		w.Header().Set("Location", (&url.URL{Path: "/v1/" + k.Object}).EscapedPath())
	}
	Send(w, status, answer)
	return nil
}

// again answers a request whose key has the row.
func (s *Server) again(w http.ResponseWriter, r *Request, c Change, k *call.Call, row *call.Row) error {
	if row.Hash != "" && row.Hash != k.Hash {
		return KeyUsed(row.Object)
	}
	ctx := call.With(r.Context(), k)
	if row.Hash != "" {
		if _, err := call.Begin(ctx, s.o.Store, nil); err != nil {
			return err
		}
	}
	answer, err := c.Again(ctx, row)
	if k.Repeats() == nil { // a command line's key, for something else
		return KeyUsed(row.Object)
	}
	if err != nil {
		return err
	}
	w.Header().Set(ReplayedHeader, "true")
	Send(w, http.StatusOK, answer)
	return nil
}

// ObjectOf returns the path of the object that the caller created or changed with the idempotency key, or
// "", for lists with the parameter idempotency_key.
func (s *Server) ObjectOf(r *Request, key string) (path string, err error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	c := call.Call{Key: key, Caller: r.Key.Merchant, Table: s.o.Table}
	row, err := c.Find(r.Context(), s.o.Store)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return row.Object, nil
}

// A running has the keys of requests that this process is answering.
type running struct {
	mu   sync.Mutex
	ends map[string]chan struct{}
}

// hold waits until no other request has the key, and takes it.
func (h *running) hold(ctx context.Context, key string) (release func(), err error) {
	limit := time.NewTimer(runningWait)
	defer limit.Stop()
	for {
		h.mu.Lock()
		end, busy := h.ends[key]
		if !busy {
			end = make(chan struct{})
			h.ends[key] = end
			h.mu.Unlock()
			return func() {
				h.mu.Lock()
				delete(h.ends, key)
				h.mu.Unlock()
				close(end)
			}, nil
		}
		h.mu.Unlock()
		select {
		case <-end:
		case <-limit.C:
			return nil, Problemf(http.StatusConflict, codeRunning, "the first request with this idempotency key is still running; repeat this one")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
