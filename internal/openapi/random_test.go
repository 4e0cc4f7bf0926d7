package openapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/spectest"
)

// A judge holds each answer, and what its request has written, to what must always be true.
type judge struct {
	w        *world
	g        *generator
	spec     *spectest.Spec
	done     map[string]int // successes by operation
	statuses map[int]int
	unread   int // requests that net/http refuses itself
}

// TestRandomRequests sends requests that are generated from openapi.json, valid ones and wrong ones, over TCP
// to a server with both halves. Each answer fits openapi.json, none is a 5xx, and no problem repeats a value
// of its request. A request that fails, or only reads, or whose key may not send it writes nothing. Another one
// writes only what it is about. The heap and the number of goroutines stay as they are.
func TestRandomRequests(t *testing.T) {
	n := soaktest.Cases(t, 400, soaktest.Share(4_000, 20_000), 200_000)
	seed := soaktest.Seed(t)
	before := runtime.NumGoroutine()
	w := newWorld(t)
	j := &judge{w: w, spec: spectest.New(t), done: map[string]int{}, statuses: map[int]int{}}
	j.g = newGenerator(w, j.spec, seed)
	var early uint64
	failed := 0
	begun := time.Now()
	for i := range n {
		w.ahead.Add(int64(time.Second))
		if i%max(n/60, 60) == 0 {
			w.ahead.Add(int64(20 * time.Hour))
		}
		r := j.g.next()
		if err := j.ask(r, fmt.Sprint("random.", i)); err != nil {
			t.Errorf("request %d: %s %.300s %.300q %.600q\nby %+v: %.3000v\n%s", i, r.method, r.target, r.header, r.body, r.who, err, w.log.take())
			if failed++; failed == 10 {
				t.FailNow()
			}
		}
		if i == n/4 {
			early = heap()
		}
	}
	t.Logf("%d requests in %s, %d of them not for the API; statuses %v; heap %d KiB after a quarter, %d KiB at the end", n,
		time.Since(begun).Round(time.Second), j.unread, j.statuses, early>>10, heap()>>10)
	t.Logf("successes: %v", j.done)
	if late := heap(); soaktest.On() && late > early+16<<20 {
		t.Errorf("the heap grows: %d bytes after a quarter, %d at the end", early, late)
	}
	var never []string
	for _, o := range j.g.ops {
		notHere := []string{"createCardLink", "getPayoutReport", "listTakeovers", "startTakeover", "undoTakeover"}   // the sandbox has none of them
		if j.done[o.Operation] == 0 && !slices.Contains(notHere, o.Operation) && o.Operation != "createPortalLink" { // which needs a seller
			never = append(never, o.Operation)
		}
	}
	t.Logf("never: %v", never)
	if n >= 20_000 && len(never) > len(j.g.ops)/5 || n >= 200_000 && len(never) > 1 {
		t.Errorf("%v never succeeded: this tries too little", never)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before {
		all := make([]byte, 1<<20)
		t.Errorf("%d goroutines at the start, %d at the end: %s", before, now, all[:runtime.Stack(all, true)])
	}
}

// heap returns the bytes in use, but for those of Stripe's fake and of the sandbox: they keep every object in
// memory, as the real ones do not in this process. It scales the samples of the profiler as pprof does.
func heap() uint64 {
	for range 2 { // the profile is of the collection before the last
		runtime.GC()
	}
	records := make([]runtime.MemProfileRecord, 100_000)
	n, _ := runtime.MemProfile(records, false)
	total := 0.0
	for _, r := range records[:n] {
		if objects := r.InUseObjects(); objects > 0 && !isFake(r.Stack()) {
			size := float64(r.InUseBytes()) / float64(objects)
			total += float64(r.InUseBytes()) / (1 - math.Exp(-size/float64(runtime.MemProfileRate)))
		}
	}
	return uint64(total)
}

// isFake reports whether a function of a fake is in the stack.
func isFake(stack []uintptr) bool {
	for frames, more := runtime.CallersFrames(stack), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.Contains(f.Function, "/stripefake") || strings.Contains(f.Function, "/internal/sandbox") {
			return true
		}
	}
	return false
}

// ask sends the request, and returns what is wrong with the answer or with what was written.
func (j *judge) ask(r *sent, id string) error {
	raw := r.raw(id)
	a, text, err := j.w.send(raw, r.method)
	if err != nil {
		return err
	}
	written := j.w.store.take()
	j.statuses[a.StatusCode]++
	in, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil || a.Header.Get("Request-Id") == "" { // net/http has answered
		j.unread++
		if a.StatusCode < 400 || a.StatusCode >= 500 && a.StatusCode != http.StatusNotImplemented {
			return fmt.Errorf("%d for a request that is not HTTP: %w", a.StatusCode, err)
		}
		r.op = nil
	} else {
		if !slices.ContainsFunc(written[id], func(x store.Write) bool { return !strings.HasPrefix(x.Key.PK, "KEY") }) {
			in.Header.Del("If-Match") // nothing to change is no change, whatever the version
		}
		err = errors.Join(j.spec.Check(&spectest.Exchange{Request: in, Asked: withoutEmpty(in, r.body), Status: a.StatusCode, Header: a.Header, Answer: text}),
			j.answer(r, a, text, id))
	}
	for by, writes := range written {
		for _, x := range writes {
			if wrong := j.wrote(r, a.StatusCode, by == id, by, x); wrong != "" {
				err = errors.Join(err, fmt.Errorf("%s: op %d of %s %q: %s", by, x.Op, x.Table, x.Key, wrong))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%d %.2000s: %w", a.StatusCode, text, err)
	}
	if r.op != nil && a.StatusCode/100 == 2 {
		j.done[r.op.Operation]++
		j.learn(r, a, text)
	}
	return nil
}

// withoutEmpty leaves out empty parameters and empty texts of a body that is an object, as openapi.json says.
func withoutEmpty(r *http.Request, body []byte) []byte {
	q := r.URL.Query()
	maps.DeleteFunc(q, func(_ string, all []string) bool { return len(all) == 1 && all[0] == "" })
	r.URL.RawQuery = q.Encode()
	var v map[string]any
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	if in.Decode(&v) != nil || in.More() {
		return body
	}
	maps.DeleteFunc(v, func(_ string, one any) bool { return one == "" })
	if len(v) == 0 {
		return body
	}
	text, _ := json.Marshal(v) // it was JSON
	return text
}

// storedName matches the subscription in the name of an account's subscription, whose account is hidden.
var storedName = regexp.MustCompile("…/[^ :]+")

// answer checks what openapi.json does not say.
func (j *judge) answer(r *sent, a *http.Response, text []byte, id string) error {
	api := strings.HasPrefix(r.target, "/v1") && r.op != nil
	var p struct{ Code, Object string }
	_ = json.Unmarshal(text, &p)                                                                         // a list of lines has none
	shown := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(string(text), id, ""), p.Object, "")) // Object is another request's
	if r.values["subscription"] == "" && !bytes.Contains(r.body, []byte("subscription")) {
		shown = storedName.ReplaceAllString(shown, "") // the request did not name it
	}
	hidden := map[string]string{merchant: otherMerchant, otherMerchant: merchant}[r.who.merchant]
	switch {
	case a.StatusCode >= 500:
		return errors.New("the server failed")
	case a.StatusCode >= 400 && (strings.Contains(shown, "canary") || strings.Contains(shown, "4711471147")):
		return errors.New("the problem repeats a value or a name of the request")
	case api && a.StatusCode/100 == 2 && !r.who.allows(r.op):
		return errors.New("the key does not allow it")
	case api && r.who.scope == "" && !slices.Contains([]string{"key", "cross_origin"}, p.Code):
		return errors.New("it is not refused for its key")
	case api && r.who.scope != "" && !r.who.allows(r.op) && !slices.Contains([]string{"scope", "merchant", "cross_origin", "no_route", "method"}, p.Code):
		return errors.New("it is not refused for its key's scope or merchant")
	case hidden != "" && a.StatusCode/100 == 2 && api && strings.Contains(shown, hidden):
		return errors.New("it shows another merchant")
	case len(r.who.header) > 40 && strings.Contains(string(text), r.who.header[7:]):
		return errors.New("the answer has the key")
	}
	return nil
}

// rows are the rows, by the begin of their PK, that an operation may write if they are not of an account.
func rows() map[string][]string {
	return map[string][]string{"setCharging": {"META"}, "updateSettings": {"SETTINGS"}, "createKey": {"KEYS"}, "revokeKey": {"KEYS"},
		"createEndpoint": {"ENDPOINTS"}, "updateEndpoint": {"ENDPOINTS"}, "deleteEndpoint": {"ENDPOINTS"}, "rotateEndpoint": {"ENDPOINTS"},
		"replayDeliveries": {"DELIVERIES#", "WHK#"}, "createRun": {"RUN#"},
		"eraseAccount": {"ERASED"}}
}

// wrote returns what is wrong with a write, or "".
func (j *judge) wrote(r *sent, status int, own bool, by string, x store.Write) string {
	billing := x.Table == j.w.tables.RecurringPayments.Name
	of := strings.SplitAfter(x.Key.PK, "#")[0]
	switch {
	case billing && of == "KEYS" && x.Op == store.OpUpdate && len(x.Set) == 1 && x.Set.Has(schema.UsedDate):
		return "" // each key's last use is noted
	case by == runID:
		return ""
	case !own && (billing && of != "ENDPOINTS" && of != "DELIVERIES#"):
		return "nobody has asked for it"
	case !own:
		return "" // of an event, a job or a delivery
	case status >= 400:
		if status == http.StatusUnprocessableEntity && r.op != nil && r.op.Operation == "createPurchase" && !billing {
			return "" // it is stored before Stripe refuses it
		}
		if r.op != nil && r.op.Operation == "eraseAccount" && x.Key.PK == "ACC#"+r.account && strings.HasPrefix(x.Key.SK, "HIS#") {
			return "" // the refusal is recorded
		}
		return "the request has failed"
	case r.op == nil || r.method == http.MethodGet || r.method == http.MethodHead || strings.HasSuffix(r.op.path, "/preview"):
		return "the request only reads"
	case !r.who.allows(r.op):
		return "the key does not allow it"
	case of == "KEY#" && billing && r.idempotent:
		return ""
	case slices.Contains(r.header, "If-Match: "+`"999999"`) && r.op.parameters.GetByInAndName("header", "If-Match") != nil:
		return "the object has another version"
	case slices.Contains(rows()[r.op.Operation], of):
		return ""
	case r.op.Merchants || r.op.Operation == "createMerchant" || r.op.Operation == "importMerchant" || r.op.Operation == "retryJob" || r.op.Operation == "replayEvent":
		if billing {
			return "it is of billing"
		}
		return ""
	case billing && x.Key.SK == "FLOOR" && r.account != "":
		return "" // the low watermark of a job
	case r.op.Operation == "eraseAccount" && !billing:
		return "" // the person's purchases, events and mail
	case r.account == "":
		return "it is not what the request is about"
	case billing && x.Key.PK == "ACC#"+r.account, billing && of == "IDX#" && strings.Contains(x.Key.SK, r.account),
		billing && strings.HasPrefix(x.Key.SK, r.account+"#"), of == "UNPAID#" && strings.HasPrefix(x.Key.SK, r.account+"/"), !billing && strings.Contains(x.Key.SK+fmt.Sprint(x.Item), r.account):
		return ""
	}
	return "it is not of the account"
}

// learn keeps ids and ETags of the answer for the next requests.
func (j *judge) learn(r *sent, a *http.Response, text []byte) {
	g := j.g
	if tag := a.Header.Get("ETag"); tag != "" {
		path, _, _ := strings.Cut(r.target, "?")
		for _, p := range []string{path, strings.Join(strings.Split(path, "/")[:min(6, strings.Count(path, "/")+1)], "/"),
			strings.Join(strings.Split(path, "/")[:min(4, strings.Count(path, "/")+1)], "/")} {
			if len(g.tags) > 200 {
				clear(g.tags)
			}
			g.tags[p] = tag
		}
	}
	var v map[string]any
	if json.Unmarshal(text, &v) != nil {
		return
	}
	if next, ok := v["next_cursor"].(string); ok {
		target, _, _ := strings.Cut(r.target, "cursor=")
		if target == r.target {
			target += map[bool]string{true: "&", false: "?"}[strings.Contains(r.target, "?")]
		}
		if g.pages = append(g.pages, &sent{op: r.op, values: r.values, method: r.method, target: target + "cursor=" + next}); len(g.pages) > 20 {
			g.pages = g.pages[1:]
		}
	}
	all, _ := v["data"].([]any)
	for _, one := range append(all, v) {
		if m, ok := one.(map[string]any); ok {
			j.learnObject(r.op.Operation, m)
		}
	}
}

func (j *judge) learnObject(operation string, m map[string]any) {
	text := func(name string) string { s, _ := m[name].(string); return s }
	g, id := j.g, text("id")
	switch {
	case operation == "createAccount" || operation == "listAccounts":
		g.learn("account", "account", id)
	case operation == "getReceiptsByAccount" || operation == "createReceipt":
		g.learn("number", "number", id, "account", text("account"))
	case m["sku"] != nil && m["payment_day"] != nil && m["version"] != nil:
		g.learn("subscription", "account", text("account"), "subscription", id)
		g.learn("period", "account", text("account"), "subscription", id, "period", fmt.Sprint(g.IntN(3)))
		g.learn("account", "account", text("account"))
	case operation == "createRun":
		g.learn("run", "run", id)
		j.await(id)
	case operation == "createKey":
		g.learn("key", "key", id)
	case operation == "createEndpoint" || operation == "listEndpoints":
		g.learn("endpoint", "endpoint", id)
	case operation == "listDeliveries":
		g.learn("message", "message", id)
	case operation == "listPurchases":
		g.learn("purchase", "purchase", id)
	case operation == "listPayments":
		g.learn("payment", "stripe_account", text("stripe_account"), "payment", id)
	case operation == "listEvents":
		g.learn("event", "event", id)
	case operation == "listJobs":
		g.learn("job", "job", id)
	}
}

// await waits until a run has ended, nearly always: what it charges must not depend on the machine's speed.
func (j *judge) await(run string) {
	admin := slices.IndexFunc(j.w.callers, func(c caller) bool { return c.scope == key.Admin && c.merchant == "" })
	r := &sent{method: http.MethodGet, target: "/v1/runs/" + run, who: j.w.callers[admin]}
	for state := any("running"); state == "running" && !j.g.chance(2); time.Sleep(time.Millisecond) {
		_, text, err := j.w.send(r.raw("await"), r.method)
		var v map[string]any
		if err != nil || json.Unmarshal(text, &v) != nil {
			j.w.Fatalf("run %s: %s, %v", run, text, err)
		}
		state = v["state"]
	}
}
