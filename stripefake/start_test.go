package stripefake

import (
	"net/http"
	"strings"
	"testing"
)

// recorder is a TB whose test fails and ends when it is told to.
type recorder struct {
	failure  string
	cleanups []func()
}

func (r *recorder) Helper()               {}
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(string, ...any) { r.failure = "fatal"; panic(r) }

var _ TB = (testing.TB)(nil)

// TestStart: the server answers at its URL with its key, and no more once the test has ended.
func TestStart(t *testing.T) {
	tb := &recorder{}
	s := StartWith(tb, Options{Keys: []Key{{Secret: "sk_test_mine", Account: DefaultAccount}}})
	get := func() (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/account", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(s.Key, "")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	if status, err := get(); status != http.StatusOK || err != nil {
		t.Errorf("while the test runs: got %d, %v, want 200", status, err)
	}
	for _, f := range tb.cleanups {
		f()
	}
	if status, err := get(); err == nil {
		t.Errorf("after the test: got %d, want no answer", status)
	}
}

func TestStart_Faults(t *testing.T) {
	tb := &recorder{}
	func() {
		defer func() { _ = recover() }()
		StartWith(tb, Options{Faults: Faults{Busy: 2}})
	}()
	if tb.failure == "" {
		t.Error("a probability of 2 was taken")
	}
}

func TestSendWebhooks_RefusesNoURL(t *testing.T) {
	if err := Start(t).SendWebhooks("ftp://a"); err == nil || !strings.Contains(err.Error(), "http") {
		t.Errorf("got %v, want an error about the URL", err)
	}
}
