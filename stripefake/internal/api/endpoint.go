package api

import (
	"errors"
	"maps"
	"net/url"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	maxEndpoints = 16             // of one account in one mode
	secretLife   = 24 * time.Hour // how long a secret still signs after it was rolled
)

const endpointParams = "url enabled_events description metadata"

func endpointRoutes() []Route {
	return []Route{
		Lists("/v1/webhook_endpoints", "webhook_endpoint", "", nil),
		on("POST", "/v1/webhook_endpoints", endpointParams+" api_version connect:bool", createEndpoint),
		on("GET", "/v1/webhook_endpoints/{webhook_endpoint}", "", (*Call).endpoint),
		on("POST", "/v1/webhook_endpoints/{webhook_endpoint}", endpointParams+" disabled:bool", updateEndpoint),
		on("DELETE", "/v1/webhook_endpoints/{webhook_endpoint}", "", deleteEndpoint),
	}
}

func (c *Call) endpoint() (object, error) {
	o, err := c.Find("webhook_endpoint", c.Path["webhook_endpoint"], "webhook_endpoint")
	if err == nil && o.Yes("deleted") {
		err = shape.Missing("webhook_endpoint", o.ID(), "webhook_endpoint")
	}
	return o, err
}

// newSecret makes a signing secret.
func (c *Call) newSecret() string { return c.NewID("whsec") }

func createEndpoint(c *Call) (object, error) {
	if err := c.Require("url", "enabled_events"); err != nil {
		return nil, err
	}
	connect := c.Flag("connect")
	o := object{"api_version": nil, "application": nil, "description": nil, "status": "enabled", "metadata": object{},
		"_connect": connect}
	if v := c.Form.Str("api_version"); v != "" {
		if err := checkVersion(v); err != nil {
			return nil, err
		}
		o["api_version"] = v
	}
	if err := c.endpointMembers(o); err != nil {
		return nil, err
	}
	open := 0
	for _, e := range c.Space.All("webhook_endpoint") {
		if !e.Yes("deleted") {
			open++
		}
	}
	if open >= maxEndpoints {
		return nil, shape.Invalid("", "", "You have reached the maximum of 16 webhook endpoints.")
	}
	secret := c.newSecret()
	o["_secrets"] = []any{object{"secret": secret, "until": int64(0)}}
	shown := c.Create("webhook_endpoint", "we", o).Clone()
	shown["secret"] = secret // it is shown this once
	return shown, nil
}

// addEndpoint makes an endpoint without a request.
func (c *Call) addEndpoint(url, secret string, connect bool) {
	c.Create("webhook_endpoint", "we", object{
		"api_version": nil, "application": nil, "description": nil, "status": "enabled", "url": url,
		"enabled_events": []any{"*"},
		"_secrets":       []any{object{"secret": secret, "until": int64(0)}}, "_connect": connect,
	})
}

// endpointMembers sets the members that the parameters give, or none if one of them is wrong.
func (c *Call) endpointMembers(o object) error {
	set := object{}
	if c.Form.Has("url") {
		if err := CheckURL(c.Form.Str("url")); err != nil {
			return shape.Invalid("url_invalid", "url", "Invalid URL: "+err.Error())
		}
		set["url"] = c.Form.Str("url")
	}
	if c.Form.Has("enabled_events") {
		types := c.Form.List("enabled_events")
		if len(types) == 0 {
			return shape.Invalid("", "enabled_events", "Invalid array: enabled_events has to be a list of types: "+
				"enabled_events[]=*")
		}
		for _, t := range types {
			if s, ok := t.(string); !ok || s == "" {
				return shape.Invalid("", "enabled_events", "Invalid type in enabled_events: "+shape.Shown(t))
			}
		}
		set["enabled_events"] = types
	}
	if c.Form.Has("description") {
		set["description"] = shape.OrNil(c.Form.Str("description"))
	}
	if err := c.Metadata(o); err != nil {
		return err
	}
	maps.Copy(o, set)
	return nil
}

// CheckURL returns an error if webhooks cannot be sent to the URL.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("want http://HOST… or https://HOST…, without user and password")
	}
	return nil
}

func updateEndpoint(c *Call) (object, error) {
	o, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	disabled := c.Flag("disabled")
	if err := c.endpointMembers(o); err != nil {
		return nil, err
	}
	switch {
	case disabled:
		o["status"] = "disabled"
	case c.Form.Has("disabled"):
		o["status"] = "enabled"
	}
	return o, nil
}

func deleteEndpoint(c *Call) (object, error) {
	o, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	o["deleted"] = true
	c.post.drop(o.ID())
	return object{"id": o.ID(), "object": "webhook_endpoint", "deleted": true}, nil
}

// roll gives the endpoint a new secret. The old ones sign for 24 more hours.
func (c *Call) roll(endpoint object) string {
	now := c.time().Unix()
	list := []any{}
	for _, s := range endpoint.List("_secrets") {
		s := s.(object)
		if s.Num("until") == 0 {
			s["until"] = now + int64(secretLife/time.Second)
		}
		if s.Num("until") > now {
			list = append(list, s)
		}
	}
	secret := c.newSecret()
	endpoint["_secrets"] = append(list, object{"secret": secret, "until": int64(0)})
	return secret
}

// secrets returns the endpoint's signing secrets at the Unix second.
func secrets(endpoint object, now int64) []string {
	var list []string
	for _, s := range endpoint.List("_secrets") {
		if s, ok := s.(object); ok && (s.Num("until") == 0 || now < s.Num("until")) {
			list = append(list, s.Str("secret"))
		}
	}
	return list
}

func CoreRoutes() []Route {
	return append(append(accountRoutes(), eventRoutes()...), endpointRoutes()...)
}

// Roll gives a webhook endpoint a new secret, and returns it. The old one signs beside it for 24
// hours of the fake's clock.
func (f *Fake) Roll(endpoint string) (secret string, err error) {
	err = f.Act("webhook_endpoint", endpoint, func(c *Call, o object) error {
		if o.Yes("deleted") {
			return shape.Missing("webhook_endpoint", endpoint, "id")
		}
		secret = c.roll(o)
		return nil
	})
	return secret, err
}
