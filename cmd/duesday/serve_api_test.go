package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An apiCLI calls billing's routes of a running serve.
type apiCLI struct {
	*cli
	base, key string
}

// call sends a request with the idempotency key, and returns the status, the header and the decoded body.
func (c *apiCLI) call(method, path, key, body string) (int, http.Header, map[string]any) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var v map[string]any
	if err != nil || json.Unmarshal(text, &v) != nil {
		c.t.Fatalf("%s %s: %d %q, %v", method, path, answer.StatusCode, text, err)
	}
	return answer.StatusCode, answer.Header, v
}

// TestServe_Billing: a program signs a customer up and charges, without Stripe and without a command. A
// repetition, also to the next process, changes nothing.
func TestServe_Billing(t *testing.T) {
	c := &apiCLI{cli: newCLI(t)}
	v, stop := c.serveBy(c.clock.Now)
	c.base, c.key = v.APIBase, c.object(exitDone, "key", "create", "shop", "--scope", "admin")["key"].(string)
	const subscription = "/v1/accounts/ada/subscriptions/s1"
	posts := []struct {
		path, body string
		status     int
	}{
		{"/v1/accounts", `{"id":"ada","email":"ada@example.com"}`, 201},
		{"/v1/accounts/ada/subscriptions", `{"id":"s1","sku":"gym","amount":1299,"currency":"EUR",` +
			`"next_payment_date":"` + today + `","payment_day":15,"payment_method":"pm_card_visa"}`, 201},
		{subscription + "/charge", `{}`, 200},
	}
	for _, p := range posts {
		status, _, got := c.call(http.MethodPost, p.path, "sign-up "+p.path, p.body)
		equal(t, p.path, status, p.status)
		if status != p.status {
			t.Fatal(got)
		}
	}
	stop()
	v, stop = c.serveBy(c.clock.Now)
	c.base = v.APIBase
	for _, p := range posts {
		status, header, _ := c.call(http.MethodPost, p.path, "sign-up "+p.path, p.body)
		equal(t, "repeated "+p.path, []any{status, header.Get("Idempotent-Replayed")}, []any{200, "true"})
	}
	_, header, shown := c.call(http.MethodGet, subscription, "", "")
	equal(t, "paid", []any{shown["status"], shown["period"], shown["paid_periods"], header.Get("ETag") != ""}, []any{"active", 1.0, 1.0, true})
	_, _, receipts := c.call(http.MethodGet, "/v1/receipts?account=ada", "", "")
	unfollowed, _, none := c.call(http.MethodGet, "/v1/merchants", "", "")
	equal(t, "Stripe is not followed", []any{unfollowed, none["code"]}, []any{409, "not_followed"})
	equal(t, "receipts", []any{len(receipts["data"].([]any)), receipts["has_more"]}, []any{1, false})
	status, _, _ := c.call(http.MethodPost, "/v1/runs", "audit", `{"kind":"verify"}`)
	equal(t, "verify", status, http.StatusAccepted)
	equal(t, "exit", stop().code, exitDone)
	c.must("verify")
}

// TestServe_Cursors: the cursor of a list is valid in the next process, and the installation's id, which the
// processor shows to others, does not open it.
func TestServe_Cursors(t *testing.T) {
	c := &apiCLI{cli: newCLI(t)}
	installation := c.object(exitDone, "store", "create")["installation"].(string)
	for _, account := range []string{"ada", "bob"} {
		c.must("account", "create", account, "--email", account+"@example.com")
	}
	c.key = c.object(exitDone, "key", "create", "shop", "--scope", "read")["key"].(string)
	v, stop := c.serveBy(c.clock.Now)
	c.base = v.APIBase
	_, _, page := c.call(http.MethodGet, "/v1/accounts?limit=1", "", "")
	cursor, _ := page["next_cursor"].(string)
	stop()
	v, _ = c.serveBy(c.clock.Now)
	c.base = v.APIBase
	status, _, page := c.call(http.MethodGet, "/v1/accounts?limit=1&cursor="+cursor, "", "")
	if rows, _ := page["data"].([]any); status != http.StatusOK || len(rows) != 1 {
		t.Errorf("the next page: %d %v", status, page)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(sealed) == 0 {
		t.Fatalf("%q: %v", cursor, err)
	}
	for _, guess := range []string{installation, ""} {
		key := sha256.Sum256([]byte("cursors\x00" + guess))
		block, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		open, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			t.Fatal(err)
		}
		if place, err := open.Open(nil, nil, sealed, []byte("/v1/accounts?#")); err == nil {
			t.Errorf("the key of %q opens the cursor: %q", guess, place)
		}
	}
}
