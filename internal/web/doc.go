// Package web holds the HTTP conventions that every route of the API follows: routes with scopes, a strict
// decoder, problems, request ids, idempotency keys, cursors and lists.
//
// A package adds routes to /v1 by returning a []Route, which Options.Routes receives:
//
//	func (b *API) Routes() []web.Route {
//		return []web.Route{{Pattern: "GET /v1/accounts/{account}", Operation: "getAccount", Scope: key.Read, Do: b.getAccount}}
//	}
//
//	func (b *API) getAccount(w http.ResponseWriter, r *web.Request) error {
//		account, err := b.records.Account(r.Context(), r.PathValue("account"))
//		if err != nil {
//			return err // Options.Kinds maps it to a Problem; a *field.Error is 422; anything else is 503, and logged
//		}
//		web.Send(w, http.StatusOK, view.Account(account))
//		return nil
//	}
//
// It does not know what the routes are about. It has no TLS and no rate limits, which a proxy in front of it
// can provide.
package web
