// Package oauth signs a person in to servers that Sallyport connects to, and keeps
// what that gives.
//
// The one idea: a person begins a sign-in and nothing else does. What a server says
// about it is data: every address is checked like the connector's own endpoint, the
// browser gets https or this machine only, and a token is for one connector at one
// endpoint and goes nowhere else (spec/permissions.md 7).
//
// The flow itself (metadata, registration, PKCE, exchange) is the SDK's
// AuthorizationCodeHandler; Book holds the tokens, renews them one at a time and is
// the mcp.Bearer of each connector. Tokens are in the keyring, never in a record, a
// log line or an error.
//
// It opens no browser and decides nothing about who may run: Login takes a grant.
// host imports it.
package oauth
