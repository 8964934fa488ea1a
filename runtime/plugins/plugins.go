// Package plugins knows what is on disk: where plugin bundles lie, which format
// each has, and which MCP servers (connectors) and skills it declares.
//
// The one idea: a bundle is data. It is read, validated at the narrowest failure
// boundary and listed with its problems; nothing of it is run, and one bad entry
// never hides its neighbours.
//
// It does not approve, start or resolve anything on PATH. approvals, host and
// api import it.
package plugins
