package dynamostore_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// A reply answers one request. %TOKEN% in its body becomes the token that the store
// sent with its write.
type reply struct {
	status int // 0: the connection is closed without an answer
	body   string
}

func answer(body string) reply { return reply{http.StatusOK, body} }

func failure(status int, code string) reply {
	return reply{status, fmt.Sprintf(
		`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"as the script has it"}`, code)}
}

func invalid(message string) reply {
	return reply{http.StatusBadRequest,
		fmt.Sprintf(`{"__type":"com.amazon.coral.validate#ValidationException","message":%q}`, message)}
}

// conflicting is a failed condition of a single write, with the stored item.
func conflicting(item string) reply {
	if item != "" {
		item = `,"Item":` + item
	}
	return reply{http.StatusBadRequest,
		`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no"` + item + `}`}
}

// cancelled is a cancelled transaction, with its reasons in JSON.
func cancelled(reasons ...string) reply {
	return reply{http.StatusBadRequest,
		`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"no","CancellationReasons":[` +
			strings.Join(reasons, ",") + `]}`}
}

func reason(code string) string {
	return fmt.Sprintf(`{"Code":%q,"Message":"as the script has it"}`, code)
}

// Items as a script returns them.
const (
	ours   = `{"id":{"S":"a"},"n":{"N":"2"},"_token":{"B":"%TOKEN%"}}`
	theirs = `{"id":{"S":"a"},"n":{"N":"7"},"_token":{"B":"AAAAAAAAAAAAAAAAAAAAAA=="}}`
)

func got(item string) reply { return answer(`{"Item":` + item + `}`) }

var (
	done    = answer(`{}`)
	absent  = answer(`{}`) // of a GetItem
	silence = reply{}
	busy    = failure(http.StatusBadRequest, "ThrottlingException")
	broken  = failure(http.StatusInternalServerError, "InternalServerError")
)

// A script is a service that gives its replies in order, whatever it is asked.
type script struct {
	t *testing.T

	mu      sync.Mutex
	replies []reply
	asked   []string // operations
	bodies  []string
	token   string
}

var sentToken = regexp.MustCompile(`"([A-Za-z0-9+/]{22}==)"`)

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.asked, s.bodies = append(s.asked, operation), append(s.bodies, sorted(s.t, body))
	if m := sentToken.FindStringSubmatch(string(body)); m != nil {
		s.token = m[1]
	}
	if len(s.replies) == 0 {
		s.t.Errorf("one request more than the script has: %s, after %v", operation, s.asked)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var now reply
	now, s.replies = s.replies[0], s.replies[1:]
	if now.status == 0 {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = connection.Close()
		}
		if err != nil {
			s.t.Error(err)
		}
		return
	}
	text := strings.ReplaceAll(now.body, "%TOKEN%", s.token)
	if !json.Valid([]byte(text)) {
		s.t.Errorf("the script is no JSON: %s", text)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(now.status)
	if _, err := io.WriteString(w, text); err != nil {
		s.t.Log(err)
	}
}

// sorted writes the names in a JSON text in order: the SDK writes maps in any.
func sorted(t *testing.T, body []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// over checks that the script was played to its end, by these operations if any.
func (s *script) over(operations ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replies) > 0 {
		s.t.Errorf("%d replies were not asked for, after %v", len(s.replies), s.asked)
	}
	if len(operations) > 0 && !slices.Equal(s.asked, operations) {
		s.t.Errorf("asked %v, want %v", s.asked, operations)
	}
}

// scripted opens a store of one table, t, over a script.
func scripted(t *testing.T, replies ...reply) (*dynamostore.Store, *script) {
	t.Helper()
	s := &script{t: t, replies: replies}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return openAt(t, server.URL), s
}

func openAt(t *testing.T, endpoint string) *dynamostore.Store {
	t.Helper()
	d, err := dynamostore.Open(t.Context(), dynamostore.Options{
		Tables: []store.Table{{Name: "t", PartitionKey: "id", TTL: "ttl",
			Indexes: []store.Index{{Name: "x", PartitionKey: "x", All: true}}}},
		Client: dynamotest.ClientAt(endpoint), Pace: quick(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
