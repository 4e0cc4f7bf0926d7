package stripefake

import (
	"net/http"
	"slices"
	"strings"
)

func unauthorized(code, message string) error {
	return &apiError{status: http.StatusUnauthorized, kind: "invalid_request_error", code: code, message: message}
}

// mask is a key as an error may show it.
func mask(key string) string {
	for _, prefix := range []string{"sk_test_", "sk_live_", "rk_test_", "rk_live_", "pk_test_", "pk_live_"} {
		if strings.HasPrefix(key, prefix) {
			return prefix + "***"
		}
	}
	return "***"
}

// authenticate returns the key of the request. mu is held.
func (f *Fake) authenticate(r *http.Request) (Key, error) {
	given, _, basic := r.BasicAuth()
	if !basic {
		var scheme string
		scheme, given, _ = strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			given = ""
		}
	}
	given = strings.TrimSpace(given)
	if given == "" {
		return Key{}, unauthorized("", "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').")
	}
	i := slices.IndexFunc(f.o.Keys, func(k Key) bool { return k.Secret == given })
	switch {
	case i < 0:
		return Key{}, unauthorized("", "Invalid API Key provided: "+mask(given))
	case f.revoked[given]:
		return Key{}, unauthorized("api_key_expired", "Expired API Key provided: "+mask(given))
	}
	return f.o.Keys[i], nil
}

func (k Key) live() bool { return strings.HasPrefix(k.Secret[min(3, len(k.Secret)):], "live_") }

// permit refuses what a restricted key may not do.
func (k Key) permit(r *http.Request, account string) error {
	for _, refused := range k.Refused {
		method, path, both := strings.Cut(refused, " ")
		if !both {
			method, path = r.Method, refused
		}
		if method == r.Method && (r.URL.Path == path || strings.HasPrefix(r.URL.Path, strings.TrimSuffix(path, "/")+"/")) {
			return &apiError{status: http.StatusForbidden, kind: "invalid_request_error",
				message: "The provided key '" + mask(k.Secret) + "' does not have the required permissions for this endpoint on account '" + account + "'."}
		}
	}
	return nil
}

// account returns whose objects the request is about: Stripe-Account names a connected
// account. mu is held.
func (f *Fake) account(k Key, r *http.Request) (string, error) {
	id := r.Header.Get("Stripe-Account")
	if id == "" || id == k.Account {
		return k.Account, nil
	}
	if a := f.accounts[id]; a == nil || a.platform != k.Account || a.gone {
		return "", &apiError{status: http.StatusForbidden, kind: "invalid_request_error", code: "account_invalid",
			message: "The provided key '" + mask(k.Secret) + "' does not have access to account '" + shown(id) + "' (or that account does not exist). Application access may have been revoked."}
	}
	return id, nil
}

// Revoke has the key answered 401 from now on; Restore takes that back.
func (f *Fake) Revoke(key string) error { return f.revoke(key, true) }

// Restore takes Revoke back.
func (f *Fake) Restore(key string) error { return f.revoke(key, false) }

func (f *Fake) revoke(key string, revoked bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.o.Keys, func(k Key) bool { return k.Secret == key }) {
		return &apiError{status: http.StatusNotFound, kind: "invalid_request_error", code: "resource_missing", param: "key", message: "No such key: " + mask(key)}
	}
	f.revoked[key] = revoked
	return nil
}
