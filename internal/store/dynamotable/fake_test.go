package dynamotable_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/duesday/duesday/internal/test/dynamotest"
)

// A fake is a service that answers as it is told, for what DynamoDB Local has not: each
// operation has a list of answers, of which the last one is given again and again.
type fake struct {
	t       *testing.T
	mu      sync.Mutex
	answers map[string][]string // by operation
	asked   []string            // "Operation {body}", without the operations that only look
}

// newFake returns a fake that knows these answers: a JSON object, or "!Name" for an error.
func newFake(t *testing.T, answers map[string][]string) (*fake, *dynamodb.Client) {
	f := &fake{t: t, answers: answers}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, dynamotest.ClientAt(server.URL)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	if !strings.HasPrefix(operation, "Describe") {
		f.asked = append(f.asked, operation+" "+canonical(f.t, string(body)))
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	list := f.answers[operation]
	if len(list) == 0 {
		f.t.Errorf("nobody told how to answer %s %s", operation, body)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if len(list) > 1 {
		f.answers[operation] = list[1:]
	}
	answer := list[0]
	if name, failed := strings.CutPrefix(answer, "!"); failed {
		w.WriteHeader(http.StatusBadRequest)
		answer = `{"__type":"com.amazonaws.dynamodb.v20120810#` + name + `","message":"as told"}`
	}
	if _, err := io.WriteString(w, answer); err != nil {
		f.t.Error(err)
	}
}

// expect holds what was asked for to the list, whatever the order of members.
func (f *fake) expect(want ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range want {
		operation, body, _ := strings.Cut(want[i], " ")
		want[i] = operation + " " + canonical(f.t, body)
	}
	if got, want := strings.Join(f.asked, "\n"), strings.Join(want, "\n"); got != want {
		f.t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Errorf("%v in %s", err, text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
