package stripefake

import (
	"errors"
	"maps"
	"net/url"
	"time"
)

const (
	maxEndpoints = 16             // of one account in one mode
	secretLife   = 24 * time.Hour // how long a secret still signs after it was rolled
)

const endpointParams = "url enabled_events description metadata"

func endpointRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/webhook_endpoints", params: listParams, do: func(c *call) (object, error) { return c.list("webhook_endpoint", nil) }},
		{method: "POST", path: "/v1/webhook_endpoints", params: endpointParams + " api_version connect", do: createEndpoint},
		{method: "GET", path: "/v1/webhook_endpoints/{webhook_endpoint}", do: (*call).endpoint},
		{method: "POST", path: "/v1/webhook_endpoints/{webhook_endpoint}", params: endpointParams + " disabled", do: updateEndpoint},
		{method: "DELETE", path: "/v1/webhook_endpoints/{webhook_endpoint}", do: deleteEndpoint},
	}
}

func (c *call) endpoint() (object, error) {
	o, err := c.find("webhook_endpoint", c.path["webhook_endpoint"], "webhook_endpoint")
	if err == nil && o.yes("deleted") {
		err = missing("webhook_endpoint", o.id(), "webhook_endpoint")
	}
	return o, err
}

// newSecret returns what signs an endpoint's webhooks until the Unix second, 0 for ever.
func (c *call) newSecret() string { return c.newID("whsec") }

func createEndpoint(c *call) (object, error) {
	if err := c.require("url", "enabled_events"); err != nil {
		return nil, err
	}
	connect, err := c.flag("connect")
	if err != nil {
		return nil, err
	}
	o := object{"api_version": nil, "application": nil, "description": nil, "status": "enabled", "metadata": object{}, "_connect": connect}
	if v := c.form.str("api_version"); v != "" {
		if err := checkVersion(v); err != nil {
			return nil, err
		}
		o["api_version"] = v
	}
	if err := c.endpointMembers(o); err != nil {
		return nil, err
	}
	open := 0
	for _, e := range c.space.all("webhook_endpoint") {
		if !e.yes("deleted") {
			open++
		}
	}
	if open >= maxEndpoints {
		return nil, invalid("", "", "You have reached the maximum of 16 webhook endpoints.")
	}
	secret := c.newSecret()
	o["_secrets"] = []any{object{"secret": secret, "until": int64(0)}}
	shown := c.create("webhook_endpoint", "we", o).clone()
	shown["secret"] = secret // it is shown this once
	return shown, nil
}

// addEndpoint makes the endpoint of an option.
func (c *call) addEndpoint(w Webhook) {
	c.create("webhook_endpoint", "we", object{
		"api_version": nil, "application": nil, "description": nil, "status": "enabled", "url": w.URL, "enabled_events": []any{"*"},
		"_secrets": []any{object{"secret": w.Secret, "until": int64(0)}}, "_connect": w.Connect,
	})
}

// endpointMembers puts what the parameters say into the endpoint, unless there is an error.
func (c *call) endpointMembers(o object) error {
	set := object{}
	if c.form.has("url") {
		if err := CheckURL(c.form.str("url")); err != nil {
			return invalid("url_invalid", "url", "Invalid URL: "+err.Error())
		}
		set["url"] = c.form.str("url")
	}
	if c.form.has("enabled_events") {
		types := c.form.list("enabled_events")
		if len(types) == 0 {
			return invalid("", "enabled_events", "Invalid array: enabled_events has to be a list of types: enabled_events[]=*")
		}
		for _, t := range types {
			if s, ok := t.(string); !ok || s == "" {
				return invalid("", "enabled_events", "Invalid type in enabled_events: "+shown(t))
			}
		}
		set["enabled_events"] = types
	}
	if c.form.has("description") {
		set["description"] = orNil(c.form.str("description"))
	}
	if err := c.metadata(o); err != nil {
		return err
	}
	maps.Copy(o, set)
	return nil
}

// CheckURL says whether webhooks can be sent to the URL.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("want http://HOST… or https://HOST…, without user and password")
	}
	return nil
}

func updateEndpoint(c *call) (object, error) {
	o, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	disabled, err := c.flag("disabled")
	if err != nil {
		return nil, err
	}
	if err := c.endpointMembers(o); err != nil {
		return nil, err
	}
	switch {
	case disabled:
		o["status"] = "disabled"
	case c.form.has("disabled"):
		o["status"] = "enabled"
	}
	return o, nil
}

func deleteEndpoint(c *call) (object, error) {
	o, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	o["deleted"] = true
	c.post.drop(o.id())
	return object{"id": o.id(), "object": "webhook_endpoint", "deleted": true}, nil
}

// roll gives the endpoint a new secret; the old ones go on signing for 24 hours.
func (c *call) roll(endpoint object) string {
	now := c.time().Unix()
	list := []any{}
	for _, s := range endpoint.list("_secrets") {
		s := s.(object)
		if s.num("until") == 0 {
			s["until"] = now + int64(secretLife/time.Second)
		}
		if s.num("until") > now {
			list = append(list, s)
		}
	}
	secret := c.newSecret()
	endpoint["_secrets"] = append(list, object{"secret": secret, "until": int64(0)})
	return secret
}

// secrets returns what the endpoint's webhooks are signed with at the Unix second.
func secrets(endpoint object, now int64) []string {
	var list []string
	for _, s := range endpoint.list("_secrets") {
		if s, ok := s.(object); ok && (s.num("until") == 0 || now < s.num("until")) {
			list = append(list, s.str("secret"))
		}
	}
	return list
}

func coreRoutes() []route {
	return append(append(accountRoutes(), eventRoutes()...), endpointRoutes()...)
}

// Roll gives a webhook endpoint a new secret, and returns it. The old one signs beside it for
// 24 hours of the fake's clock.
func (f *Fake) Roll(endpoint string) (secret string, err error) {
	err = f.act("webhook_endpoint", endpoint, func(c *call, o object) error {
		if o.yes("deleted") {
			return missing("webhook_endpoint", endpoint, "id")
		}
		secret = c.roll(o)
		return nil
	})
	return secret, err
}
