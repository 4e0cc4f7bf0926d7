package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

func unauthorized(code, message string) error {
	return shape.Refused(http.StatusUnauthorized, code, "", message)
}

// mask returns a key as errors show it.
func mask(key string) string {
	for _, prefix := range []string{"sk_test_", "sk_live_", "rk_test_", "rk_live_", "pk_test_", "pk_live_"} {
		if strings.HasPrefix(key, prefix) {
			return prefix + "***"
		}
	}
	return "***"
}

// authenticate returns the key of the request. The caller holds Mu.
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
		return Key{}, unauthorized("", "You did not provide an API key. You need to provide your API key in the "+
			"Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').")
	}
	i := slices.IndexFunc(f.Options.Keys, func(k Key) bool { return k.Secret == given })
	switch {
	case i < 0:
		return Key{}, unauthorized("", "Invalid API Key provided: "+mask(given))
	case f.revoked[given]:
		return Key{}, unauthorized("api_key_expired", "Expired API Key provided: "+mask(given))
	}
	return f.Options.Keys[i], nil
}

func (k Key) live() bool { return strings.HasPrefix(k.Secret[min(3, len(k.Secret)):], "live_") }

// permit returns the error of a restricted key that may not do this.
func (k Key) permit(r *http.Request, account string) error {
	for _, refused := range k.Refused {
		method, path, both := strings.Cut(refused, " ")
		if !both {
			method, path = r.Method, refused
		}
		if method == r.Method && (r.URL.Path == path || strings.HasPrefix(r.URL.Path, strings.TrimSuffix(path, "/")+"/")) {
			return shape.Refused(http.StatusForbidden, "", "", "The provided key '"+mask(k.Secret)+"' does not have the "+
				"required permissions for this endpoint on account '"+account+"'.")
		}
	}
	return nil
}

// account returns the account of the request: Stripe-Account names a connected one. The caller
// holds Mu.
func (f *Fake) account(k Key, r *http.Request) (string, error) {
	id := r.Header.Get("Stripe-Account")
	if id == "" || id == k.Account {
		return k.Account, nil
	}
	if a := f.accounts[id]; a == nil || a.platform != k.Account || a.gone {
		return "", noAccess("'"+mask(k.Secret)+"' ", id)
	}
	return id, nil
}

// Revoke makes the fake answer 401 to the key, or takes that back.
func (f *Fake) Revoke(key string, revoked bool) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if !slices.ContainsFunc(f.Options.Keys, func(k Key) bool { return k.Secret == key }) {
		return shape.Refused(http.StatusNotFound, "resource_missing", "key", "No such key: "+mask(key))
	}
	f.revoked[key] = revoked
	return nil
}
