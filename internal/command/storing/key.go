package storing

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

// keyLeaf returns a leaf command that uses the open store's API keys.
func (p *program) keyLeaf(use string, do func(ctx context.Context, keys *key.Ring, args []string) error) *cobra.Command {
	return p.StoreLeaf(use, session.Need{Read: true}, func(ctx context.Context, s *session.Session, args []string) error {
		return do(ctx, s.Keys(p.Machine()), args)
	})
}

func (p *program) keyCreate() *cobra.Command {
	k := key.Key{}
	scope := screen.ChoiceFlag(key.Scopes()...)
	expires := screen.Flag[time.Time]{Form: "TIME", Parse: p.parseExpiry}
	// An empty value, such as from an unset variable, must not create a key for all merchants.
	merchant := screen.Flag[string]{Form: "UUID", Parse: func(text string) (string, error) {
		if !tracking.IsUUID(text) {
			return "", screen.Usagef("must be a UUID, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58")
		}
		return text, nil
	}}
	c := p.keyLeaf("create NAME",
		func(ctx context.Context, keys *key.Ring, args []string) error {
			k.Name, k.Scope, k.Merchant, k.Expires = args[0], scope.Value, merchant.Value, expires.Value
			text, err := keys.Create(ctx, &k)
			if e, ok := errors.AsType[*field.Error](err); ok && e.Field == "name" {
				return err
			}
			if err != nil {
				return session.ByFlag(err)
			}
			p.Say("%s\n\nThis is the key %s. It is shown only once, because the store contains only its hash.", text.Reveal(), k.ID)
			return p.JSON(append(view.Key(&k), "key", text.Reveal()))
		})
	f := c.Flags()
	f.Var(&scope, "scope", "what the key can do; each scope includes the ones before it")
	f.Var(&merchant, "merchant", "`UUID` of the only merchant that the key can see (default: all)")
	f.Var(&expires, "expires", "when the key expires: after a number of days such as 90d, or at a time or date in UTC (default: never)")
	session.Required(c, "scope")
	return c
}

// mostKeyDays is the maximum value of --expires in days.
const mostKeyDays = 3660

func (p *program) parseExpiry(text string) (time.Time, error) {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n >= 1 && n <= mostKeyDays {
			return p.Machine()().AddDate(0, 0, n), nil
		}
	} else if f := screen.InstantFlag(); f.Set(text) == nil {
		return f.Value, nil
	}
	return time.Time{}, screen.Usagef("must be a number of days such as 90d, up to %d, or a date such as 2027-03-15", mostKeyDays)
}

func (p *program) keyList() *cobra.Command {
	return p.keyLeaf("list",
		func(ctx context.Context, keys *key.Ring, _ []string) error {
			return screen.ListAll(p.Screen, screen.ListOrder{}, "key", keys.All(ctx), view.Key,
				[]string{"NAME", "KEY", "SCOPE", "MERCHANT", "CREATED", "EXPIRES", "REVOKED", "LAST USED"}, func(k *key.Key) []any {
					return []any{k.Name, k.ID, k.Scope, k.Merchant, k.Created, k.Expires, k.Revoked, k.Used}
				})
		})
}

func (p *program) keyRevoke() *cobra.Command {
	return p.keyLeaf("revoke KEY",
		func(ctx context.Context, keys *key.Ring, args []string) error {
			k, err := keys.Revoke(ctx, args[0])
			if err != nil {
				return err
			}
			p.Say("key %s (%s) is revoked; a running duesday serve rejects it within five seconds", k.ID, k.Name)
			return p.JSON(view.Key(k))
		})
}
