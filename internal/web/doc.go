// Package web implements the HTTP conventions of the API: routes with scopes, a strict decoder, problems,
// request IDs, idempotency keys, cursors and lists.
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
//			return err // Options.Kinds maps it to a Problem; a *field.Error is 422; any other error is logged, and 503
//		}
//		web.Send(w, http.StatusOK, view.Account(account))
//		return nil
//	}
//
// It does not know billing or tracking, and leaves TLS and rate limits to a proxy in front of it.
package web
