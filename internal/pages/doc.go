// Package pages serves the pages on which operators see and change an installation in a browser.
//
// Each page asks the API of the same process with the session's key, so that scopes, idempotency, history
// and dry runs are the API's own. The package decides nothing about money, reads no store, and has no API:
// browsers and programs never share a listener. Every page and every action works without script.
package pages
