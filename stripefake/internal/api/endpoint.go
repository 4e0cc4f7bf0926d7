package api

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	maxEndpoints = 16             // of one account in one mode
	secretLife   = 24 * time.Hour // how long a secret still signs after it was rolled
)

func endpointRoutes() []Route {
	const params, one = "=description metadata ", "/v1/webhook_endpoints/{webhook_endpoint}"
	return []Route{
		Lists("/v1/webhook_endpoints", "webhook_endpoint", "", nil),
		on("POST", "/v1/webhook_endpoints", params+"url! enabled_events! api_version connect:bool", createEndpoint),
		on("GET", one, "", (*Call).endpoint),
		on("POST", one, params+"url enabled_events disabled:bool", Update("", (*Call).endpoint, updateEndpoint)),
		on("DELETE", one, "", With((*Call).endpoint, deleteEndpoint)),
	}
}

func (c *Call) endpoint() (object, error) {
	o, err := c.Find("webhook_endpoint", c.ID, "webhook_endpoint")
	if err == nil && o.Yes("deleted") {
		return nil, shape.Missing("webhook_endpoint", o.ID(), "webhook_endpoint")
	}
	return o, err
}

// newEndpoint stores an endpoint with the members, which signs with the secret.
func (c *Call) newEndpoint(members object, secret string, connect bool) object {
	maps.Copy(members, object{"application": nil, "status": "enabled", "_connect": connect,
		"_secrets": []any{object{"secret": secret, "until": int64(0)}}})
	return c.Create("webhook_endpoint", "we", members)
}

func createEndpoint(c *Call) (object, error) {
	o := object{"api_version": nil, "description": nil, "metadata": object{}, "_events": string(SnapshotEvents)}
	if v := c.Form.Str("api_version"); v != "" {
		if err := checkVersion(v); err != nil {
			return nil, err
		}
		o["api_version"] = v
	}
	if err := c.describeEndpoint(o); err != nil {
		return nil, err
	}
	isDeleted := func(e object) bool { return e.Yes("deleted") }
	if len(slices.DeleteFunc(c.Space.All("webhook_endpoint"), isDeleted)) >= maxEndpoints {
		return nil, shape.Invalid("", "", "You have reached the maximum of 16 webhook endpoints.")
	}
	secret := c.NewID("whsec")
	shown := c.newEndpoint(o, secret, c.Flag("connect")).Clone()
	shown["secret"] = secret // it is shown this once
	return shown, nil
}

// describeEndpoint sets the members that the parameters give.
func (c *Call) describeEndpoint(o object) error {
	if c.Form.Has("url") {
		if err := CheckURL(c.Form.Str("url")); err != nil {
			return shape.Invalid("url_invalid", "url", "Invalid URL: "+err.Error())
		}
		o["url"] = c.Form.Str("url")
	}
	if c.Form.Has("enabled_events") {
		types := c.Form.List("enabled_events")
		if len(types) == 0 {
			return shape.Invalid("", "enabled_events", "Invalid array: enabled_events must be a list of types: "+
				"enabled_events[]=*")
		}
		for _, t := range types {
			if s, ok := t.(string); !ok || s == "" {
				return shape.Invalid("", "enabled_events", "Invalid type in enabled_events: "+shape.Shown(t))
			}
		}
		o["enabled_events"] = types
	}
	return c.Describe(o)
}

// CheckURL returns an error if webhooks cannot be sent to the URL.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("must be http://HOST… or https://HOST…, without user and password")
	}
	return nil
}

func updateEndpoint(c *Call, o object) error {
	if c.Form.Has("disabled") {
		o["status"] = map[bool]string{true: "disabled", false: "enabled"}[c.Flag("disabled")]
	}
	return c.describeEndpoint(o)
}

func deleteEndpoint(c *Call, o object) (object, error) {
	o["deleted"] = true
	return o.Deleted(), nil
}

// secrets returns the endpoint's signing secrets at the Unix second.
func secrets(endpoint object, now int64) []string {
	var list []string
	for _, s := range shape.ObjectsOf(endpoint.List("_secrets")) {
		if s.Num("until") == 0 || now < s.Num("until") {
			list = append(list, s.Str("secret"))
		}
	}
	return list
}

func (f *Fake) Roll(endpoint string) (secret string, err error) {
	err = f.Act("webhook_endpoint", endpoint, func(c *Call, o object) error {
		if o.Yes("deleted") {
			return shape.Missing("webhook_endpoint", endpoint, "id")
		}
		now := c.time().Unix()
		list := []any{}
		for _, s := range shape.ObjectsOf(o.List("_secrets")) {
			if s.Num("until") == 0 {
				s["until"] = now + int64(secretLife/time.Second)
			}
			if s.Num("until") > now {
				list = append(list, s)
			}
		}
		secret = c.NewID("whsec")
		o["_secrets"] = append(list, object{"secret": secret, "until": int64(0)})
		return nil
	})
	return secret, err
}
