// Package clients knows the agent programs on this computer: where each keeps its
// configuration, how MCP servers are written in it, and how one entry is put in and
// taken out again.
//
// The one idea: a client is data. A row says its name, where its files lie on each
// system, which key holds the servers and how one is written; reading, converting and
// editing are the same code for all. Every file becomes one tree of values with
// places, whatever it was written in (JSON with comments, TOML, YAML, in UTF-8 or
// UTF-16), and every edit is a splice of bytes: what is not ours stays byte for byte,
// or the edit is refused.
//
// It runs nothing, keeps no secret and decides nothing: what it reads are other
// people's words, to be shown and asked about. It writes only in Apply and Undo. host
// and those above import it.
package clients
