// Package conformance runs the official suite (@modelcontextprotocol/conformance)
// against the gateway, in front of the everything-server of the Go SDK as a stdio
// child, which is spoken to in both generations.
//
// It runs the suite's scenarios for clients that sign in too, against a whole host: its
// servers and authorization servers are the other side.
//
// The one idea: the gateway alone, with a host of the test's own; package e2e runs
// the suite through the whole sidecar. It holds nothing but that test, which needs
// npm; the Node 22 that is pinned for it is one for Linux on amd64.
//
// Nobody imports it.
package conformance
