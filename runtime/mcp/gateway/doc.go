// Package gateway is what agents talk to: one MCP endpoint in front of every
// connector that a client may use, over streamable HTTP and over a byte stream,
// in both protocol generations (2024-11-05 to 2025-11-25 with sessions, and the
// stateless 2026-07-28).
//
// The one idea: the gateway reads envelopes and splices names. A call's params
// and its result are the same bytes on both sides but for the tool's name, the
// request's id and, towards 2026-07-28, the marker resultType; nothing is
// decoded and encoded again, so numbers, escapes and key order survive
// (spec/stdio-framing.md 4). Each request belongs to one client, and whatever a
// server sends while it runs (progress, logging, questions) goes to that client
// or nowhere.
//
// It decides nothing: what a client sees and whether a call is allowed is the
// Backend's to say, and so are processes, approvals and audit. It authenticates
// nobody either: the client's name arrives with the request. host builds it, api
// mounts its Handler and hands it streams.
package gateway
