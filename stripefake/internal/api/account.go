package api

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// An account is one of Stripe's.
type account struct {
	object   object
	platform string // the account it is connected to; "": none
	gone     bool   // it has disconnected
	version  string // default version of the API; "": NewestVersion
}

const accountParams = "=email =business_type metadata capabilities business_profile =default_currency " +
	"company individual settings tos_acceptance"

func accountRoutes() []Route {
	return []Route{
		on("GET", "/v1/account", "", func(c *Call) (object, error) { return c.member(c.Space.Account) }),
		on("GET", "/v1/accounts", ListParams+"created", listAccounts),
		on("POST", "/v1/accounts", accountParams+" =type =country controller", createAccount),
		on("GET", "/v1/accounts/{account}", "", (*Call).accountOfPath),
		on("POST", "/v1/accounts/{account}", accountParams, Update("", (*Call).accountOfPath, (*Call).Describe)),
		on("DELETE", "/v1/accounts/{account}", "", With((*Call).accountOfPath, deleteAccount)),
	}
}

// addAccount makes an account, connected to the platform; "": to none. The caller holds Mu.
func (f *Fake) addAccount(id, platform string, members object) *account {
	o := object{"id": id, "object": "account", "type": "standard", "country": "US", "default_currency": "usd",
		"email": nil, "business_type": nil, "charges_enabled": true, "payouts_enabled": true, "details_submitted": true,
		"metadata": object{}, "created": f.time().Unix()}
	maps.Copy(o, members)
	a := &account{object: o, platform: platform}
	f.accounts[id] = a
	return a
}

// accountObject returns the account if the call may see it, or nil.
func (c *Call) accountObject(id string) object {
	if a := c.accounts[id]; a != nil && !a.gone && (id == c.Space.Account || a.platform == c.Space.Account) {
		return a.object
	}
	return nil
}

// defaultVersion returns the version of the account's events, and of its requests without a
// version. A connected account has the version of its platform. The caller holds Mu.
func (f *Fake) defaultVersion(id string) string {
	a := f.accounts[id]
	if a != nil && a.platform != "" {
		a = f.accounts[a.platform]
	}
	if a == nil || a.version == "" {
		return NewestVersion
	}
	return a.version
}

// member returns the account if the call may see it. One error hides all other accounts.
func (c *Call) member(id string) (object, error) {
	if o := c.accountObject(id); o != nil {
		return o, nil
	}
	return nil, noAccess("", id)
}

func (c *Call) accountOfPath() (object, error) { return c.member(c.ID) }

func noAccess(key, id string) error {
	return shape.Refused(http.StatusForbidden, "account_invalid", "", "The provided key "+key+"does not have access to "+
		"account '"+shape.Shown(id)+"' (or that account does not exist). Application access may have been revoked.")
}

func listAccounts(c *Call) (object, error) {
	var all []object
	for _, a := range c.accounts {
		if a.platform == c.Space.Account && !a.gone {
			all = append(all, a.object)
		}
	}
	slices.SortFunc(all, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.Num("created"), b.Num("created")), cmp.Compare(a.ID(), b.ID()))
	})
	return c.Page(all, nil)
}

func createAccount(c *Call) (object, error) {
	members := object{}
	if err := c.Describe(members); err != nil {
		return nil, err
	}
	o := c.addAccount(c.NewID("acct"), c.Space.Account, members).object
	c.tellApplication(o.ID(), appAuthorized)
	return o, nil
}

func deleteAccount(c *Call, o object) (object, error) {
	if o.ID() == c.Space.Account {
		return nil, shape.Invalid("", "account", "You cannot delete your own account via the API.")
	}
	c.leave(o.ID())
	return o.Deleted(), nil
}

// Connected says whether the call is about a connected account.
func (c *Call) Connected() bool {
	a := c.accounts[c.Space.Account]
	return a != nil && a.platform != ""
}

// The types of the events of a connection's begin and end.
const (
	appAuthorized   = "account.application.authorized"
	appDeauthorized = "account.application.deauthorized"
)

// leave disconnects a connected account from its platform, in both modes.
func (c *Call) leave(id string) {
	a := c.accounts[id]
	if a.gone {
		return
	}
	c.tellApplication(id, appDeauthorized)
	a.gone = true
}

// tellApplication makes the account's event about its platform's application, in each mode.
func (c *Call) tellApplication(id, typ string) {
	platform, asked := c.accounts[id].platform, c.Space
	for _, live := range []bool{false, true} {
		c.Space = c.In(id, live)
		c.Emit(typ, object{"id": "ca_" + strings.TrimPrefix(platform, "acct_"), "object": "application", "name": platform},
			nil)
	}
	c.Space = asked
}

// accountForm is the form of an account's id.
var accountForm = regexp.MustCompile(`^acct_[A-Za-z0-9_]+$`)

// CheckAccount says whether an account can have the id.
func CheckAccount(id string) error {
	if !accountForm.MatchString(id) {
		return errors.New("must be acct_ and letters or digits")
	}
	return nil
}

func (f *Fake) Connect(id, platform string) error {
	if err := CheckAccount(id); err != nil {
		return shape.Invalid("", "id", "Invalid id: "+err.Error())
	}
	platform = cmp.Or(platform, DefaultAccount)
	defer f.lock()()
	switch a := f.accounts[id]; {
	case f.accounts[platform] == nil || f.accounts[platform].platform != "":
		return shape.Invalid("", "platform", "Invalid platform: '"+shape.Shown(platform)+"' must be an account with API keys")
	case a == nil:
		f.addAccount(id, platform, nil)
		f.System(f.In(id, false)).tellApplication(id, appAuthorized)
	case a.platform != platform:
		return shape.Invalid("", "id", "Invalid id: another platform has connected this account")
	case a.gone:
		a.gone = false
		f.System(f.In(id, false)).tellApplication(id, appAuthorized)
	}
	return nil
}

func (f *Fake) Disconnect(id string) error {
	defer f.lock()()
	a := f.accounts[id]
	if a == nil || a.platform == "" {
		return shape.Missing("account", id, "id")
	}
	f.System(f.In(id, false)).leave(id)
	return nil
}

func (f *Fake) SetVersion(account, version string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	defer f.lock()()
	a := f.accounts[account]
	if a == nil {
		return shape.Missing("account", account, "id")
	}
	a.version = version
	return nil
}

func unauthorized(code, message string) error {
	return shape.Refused(http.StatusUnauthorized, code, "", message)
}

// keyPrefix is the part of a key that errors show.
var keyPrefix = regexp.MustCompile(`^[srp]k_(test|live)_`)

// mask returns a key as errors show it.
func mask(key string) string { return keyPrefix.FindString(key) + "***" }

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

// account is that of the request: Stripe-Account or Stripe-Context names one. The caller holds Mu.
func (f *Fake) account(k Key, r *http.Request) (string, error) {
	id := cmp.Or(r.Header.Get("Stripe-Context"), r.Header.Get("Stripe-Account"))
	if id == "" || id == k.Account {
		return k.Account, nil
	}
	if a := f.accounts[id]; a == nil || a.platform != k.Account || a.gone {
		return "", noAccess("'"+mask(k.Secret)+"' ", id)
	}
	return id, nil
}

// Revoke makes the fake answer 401 to requests with the key, or accept the key again.
func (f *Fake) Revoke(key string, revoked bool) error {
	defer f.lock()()
	if !slices.ContainsFunc(f.Options.Keys, func(k Key) bool { return k.Secret == key }) {
		return shape.Refused(http.StatusNotFound, "resource_missing", "key", "No such key: "+mask(key))
	}
	f.revoked[key] = revoked
	return nil
}
