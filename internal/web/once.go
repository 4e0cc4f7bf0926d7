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

// A Change is a POST that changes something, with the caller's idempotency key.
type Change struct {
	// Object is the path of the created or changed object, such as accounts/123. If it is "", Do sets
	// call.Of(ctx).Object before its first commit.
	Object string
	Asked  any // decoded body; nil: none

	// Do makes the change. Its first commit through call.Commit also stores the idempotency key's row, so
	// Do must not commit if it rejects the request.
	Do func(ctx context.Context) (status int, answer any, err error)

	// Again finishes a change that was interrupted after its first commit. It makes no further attempt, and
	// returns the current object, without its secrets. The context's call repeats the row's call, so its
	// commits store no row. If row.Hash is "", the key came from a command: Again must then pass a function
	// to call.Begin that compares the request with row.Item. Otherwise, the key counts as another request's.
	Again func(ctx context.Context, row *call.Row) (answer any, err error)
}

// KeyHeader is the header that contains the idempotency key.
const KeyHeader = "Idempotency-Key"

const (
	// ReplayedHeader is set in the response to a repeated request.
	ReplayedHeader = "Idempotent-Replayed"
	runningWait    = 10 * time.Second // for another request with the same key
	maxKey         = 255
)

// idempotencyForm matches an idempotency key: printable ASCII.
var idempotencyForm = regexp.MustCompile(`^[ -~]{1,255}$`)

// IdempotencyKey returns the request's idempotency key, or a Problem if it does not have exactly one.
func (r *Request) IdempotencyKey() (string, error) {
	keys := r.Header.Values(KeyHeader)
	if len(keys) != 1 || !idempotencyForm.MatchString(keys[0]) {
		return "", Problemf(http.StatusBadRequest, codeUsedKey, "the request must have one %s header with 1 to %d printable ASCII characters",
			KeyHeader, maxKey)
	}
	return keys[0], nil
}

// CheckKey returns a field.Error for the parameter idempotency_key if the text cannot be a key.
func CheckKey(text string) error {
	if !idempotencyForm.MatchString(text) {
		return field.Wrong("idempotency_key", fmt.Sprintf("must be 1 to %d printable ASCII characters", maxKey))
	}
	return nil
}

// KeyUsed returns the Problem for an idempotency key that another request used for the object.
func KeyUsed(object string) error {
	return &Problem{Status: http.StatusUnprocessableEntity, Code: codeUsedKey, Object: object,
		Detail: "another request used this idempotency key; repeat that request unchanged, or use a new key"}
}

// Once makes a Change at most once for each of the caller's idempotency keys, and sends the response. A
// repeated request gets the current object. If this process is still handling a request with the same key,
// Once waits for it.
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
	if err == nil && k.Repeats() != nil { // another process has stored the row meanwhile
		return s.again(w, r, c, &k, k.Repeats())
	}
	if err == nil && !k.Stored() {
		err = call.Commit(ctx, s.o.Store) // there was nothing to change
	}
	if err != nil && !k.Stored() { // another process may have been faster, and its effect caused the error
		if row, found := first.Find(ctx, s.o.Store); found == nil {
			return s.again(w, r, c, &first, row)
		}
	}
	if err != nil {
		return err
	}
	if status == http.StatusCreated && strings.HasPrefix("/v1/"+k.Object, r.URL.Path) { // false for a receipt, whose object is the subscription
		w.Header().Set("Location", (&url.URL{Path: "/v1/" + k.Object}).EscapedPath())
	}
	Send(w, status, answer)
	return nil
}

// again responds to a request whose key has the row.
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
	if k.Repeats() == nil { // a command used the key for something else
		return KeyUsed(row.Object)
	}
	if err != nil {
		return err
	}
	w.Header().Set(ReplayedHeader, "true")
	Send(w, http.StatusOK, answer)
	return nil
}

// running contains the keys of requests that this process is handling.
type running struct {
	mu   sync.Mutex
	ends map[string]chan struct{}
}

// hold waits until no other request holds the key, and then holds it until release.
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
			return nil, Problemf(http.StatusConflict, codeRunning, "the first request with this idempotency key is still running; try again")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
