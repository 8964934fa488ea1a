// Package conformance runs the official suite (@modelcontextprotocol/conformance)
// against the gateway, in front of the everything-server of the Go SDK as a stdio
// child. It holds nothing but that test, which needs npm and Node 22 and is built
// with the tag conformance only:
//
//	go test -tags conformance ./runtime/mcp/gateway/conformance
//
// Nobody imports it.
package conformance
