// Package mcp speaks the Model Context Protocol with plugins: bounded framing,
// one strict parse per message, connections, and the sessions that calls go
// through.
//
// The one idea: what an agent asks passes raw. A message is cut out of the
// child's output, looked at once, routed by its envelope, and its params or
// result reach the other side byte for byte; only the handshake is done by the
// official SDK. Everything that can go wrong with a connection ends in one place,
// once, as a *ProtocolError (spec/stdio-framing.md 6).
//
// It decides nothing about who may call: a start takes an approvals.Grant and a
// tool call an approvals.CallGrant, and both are asked again at the moment of
// use. It knows no database, no files and no HTTP server. host and the gateway
// import it.
package mcp
