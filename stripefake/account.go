package stripefake

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// An account is one of Stripe's.
type account struct {
	object   object
	platform string // the account that it is connected to; "": it is nobody's
	gone     bool   // it has disconnected
	version  string // of the API, for requests and webhooks that name none; "": NewestVersion
}

const accountParams = "email business_type metadata capabilities business_profile default_currency company individual settings tos_acceptance"

func accountRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/account", do: func(c *call) (object, error) { return c.accounts[c.space.account].object, nil }},
		{method: "GET", path: "/v1/accounts", params: listParams + "created", do: listAccounts},
		{method: "POST", path: "/v1/accounts", params: accountParams + " type country controller", do: createAccount},
		{method: "GET", path: "/v1/accounts/{account}", do: func(c *call) (object, error) { return c.member(c.path["account"]) }},
		{method: "POST", path: "/v1/accounts/{account}", params: accountParams, do: updateAccount},
		{method: "DELETE", path: "/v1/accounts/{account}", do: deleteAccount},
	}
}

// addAccount makes an account, which is connected to the platform unless that is "". mu is
// held.
func (f *Fake) addAccount(id, platform string, members object) *account {
	o := object{
		"id": id, "object": "account", "type": "standard", "country": "US", "default_currency": "usd", "email": nil, "business_type": nil,
		"charges_enabled": true, "payouts_enabled": true, "details_submitted": true, "metadata": object{}, "created": f.time().Unix(),
	}
	maps.Copy(o, members)
	a := &account{object: o, platform: platform}
	f.accounts[id] = a
	return a
}

// accountObject returns the account that the call may see, or nil.
func (c *call) accountObject(id string) object {
	if a := c.accounts[id]; a != nil && !a.gone && (id == c.space.account || a.platform == c.space.account) {
		return a.object
	}
	return nil
}

// defaultVersion is what the account's requests are answered in, and its events are made
// in. A connected account has that of its platform. mu is held.
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

// member returns an account that the call may see, or the error that hides all others.
func (c *call) member(id string) (object, error) {
	if o := c.accountObject(id); o != nil {
		return o, nil
	}
	return nil, noAccess(id)
}

func noAccess(id string) error {
	return &apiError{status: http.StatusForbidden, kind: "invalid_request_error", code: "account_invalid",
		message: "The provided key does not have access to account '" + shown(id) + "' (or that account does not exist). Application access may have been revoked."}
}

func listAccounts(c *call) (object, error) {
	var all []object
	for _, a := range c.accounts {
		if a.platform == c.space.account && !a.gone {
			all = append(all, a.object)
		}
	}
	slices.SortFunc(all, func(a, b object) int {
		if a.num("created") != b.num("created") {
			return int(a.num("created") - b.num("created"))
		}
		if a.id() < b.id() {
			return -1
		}
		return 1
	})
	return c.page(all, nil)
}

func createAccount(c *call) (object, error) {
	members := object{}
	if err := c.accountMembers(members); err != nil {
		return nil, err
	}
	o := c.addAccount(c.newID("acct"), c.space.account, members).object
	c.tellApplication(o.id(), appAuthorized)
	return o, nil
}

func updateAccount(c *call) (object, error) {
	o, err := c.member(c.path["account"])
	if err != nil {
		return nil, err
	}
	return o, c.accountMembers(o)
}

// accountMembers puts what the parameters say into the members; of the many that an account
// can have, those that are texts.
func (c *call) accountMembers(o object) error {
	if err := c.metadata(o); err != nil {
		return err
	}
	for _, name := range []string{"type", "country", "email", "business_type", "default_currency"} {
		if c.form.has(name) {
			o[name] = c.form.str(name)
		}
	}
	return nil
}

func deleteAccount(c *call) (object, error) {
	o, err := c.member(c.path["account"])
	if err != nil {
		return nil, err
	}
	if o.id() == c.space.account {
		return nil, invalid("", "account", "You cannot delete your own account via the API.")
	}
	c.leave(o.id())
	return object{"id": o.id(), "object": "account", "deleted": true}, nil
}

// connected says whether the call is about a connected account.
func (c *call) connected() bool {
	a := c.accounts[c.space.account]
	return a != nil && a.platform != ""
}

// The types of events by which a platform learns that an account has come, or gone.
const (
	appAuthorized   = "account.application.authorized"
	appDeauthorized = "account.application.deauthorized"
)

// leave has a connected account disconnect from its platform, in both modes.
func (c *call) leave(id string) {
	a := c.accounts[id]
	if a.gone {
		return
	}
	c.tellApplication(id, appDeauthorized)
	a.gone = true
}

// tellApplication makes the account's event about its platform's application, in each mode: an
// application is authorized for both.
func (c *call) tellApplication(id, typ string) {
	platform, asked := c.accounts[id].platform, c.space
	for _, live := range []bool{false, true} {
		c.space = c.in(id, live)
		c.emit(typ, object{"id": "ca_" + strings.TrimPrefix(platform, "acct_"), "object": "application", "name": platform}, nil)
	}
	c.space = asked
}

// CheckAccount says whether an account can have the id.
func CheckAccount(id string) error {
	if tail, ok := strings.CutPrefix(id, "acct_"); !ok || tail == "" || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		return errors.New("want acct_ and letters or digits")
	}
	return nil
}

// Connect connects the account to the platform, DefaultAccount if that is "": a new one, or
// one that was disconnected. The platform's Connect endpoints are told.
func (f *Fake) Connect(id, platform string) error {
	if err := CheckAccount(id); err != nil {
		return invalid("", "id", "Invalid id: "+err.Error())
	}
	if platform == "" {
		platform = DefaultAccount
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch a := f.accounts[id]; {
	case f.accounts[platform] == nil || f.accounts[platform].platform != "":
		return invalid("", "platform", "Invalid platform: '"+shown(platform)+"' is nobody who has keys")
	case a == nil:
		f.addAccount(id, platform, nil)
		f.system(f.in(id, false)).tellApplication(id, appAuthorized)
	case a.platform != platform:
		return invalid("", "id", "Invalid id: the account is there, and is not the platform's")
	case a.gone:
		a.gone = false
		f.system(f.in(id, false)).tellApplication(id, appAuthorized)
	}
	return nil
}

// Disconnect has the connected account leave its platform, whose Connect endpoints are told.
// What it has stays.
func (f *Fake) Disconnect(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.accounts[id]
	if a == nil || a.platform == "" {
		return missing("account", id, "id")
	}
	f.system(f.in(id, false)).leave(id)
	return nil
}

// SetVersion makes it the account's default version of the API. A connected account has that
// of its platform.
func (f *Fake) SetVersion(account, version string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.accounts[account]
	if a == nil {
		return missing("account", account, "id")
	}
	a.version = version
	return nil
}
