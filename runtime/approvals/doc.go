// Package approvals decides what may run: who agreed to which exact identity.
//
// The one idea: the check is a value. Starting a process, dialling and calling
// each take a Grant (or CallGrant); only this package makes one, after comparing
// the identity resolved now with the approved one (spec/approval.md 5).
//
// The way of a connector: resolve.go reads what exactly would run into Fields
// (identity.go), whose hash is the Identity; ask.go and answer.go put it to the
// operator and stage the snapshot; probe.go lets it be tried once; answer.go pins
// the tools that were chosen (pins.go); start.go compares everything again at
// every start, and live.go at every call. What is recorded is sealed and listed
// (documents.go), and the end of it is kept with the key elsewhere (keeper.go).
//
// Two rules hold everywhere: nothing takes effect in memory before it is on disk
// with its audit record (Gate.commit), and the gate's lock is never held while
// files are read.
//
// It starts nothing and speaks no protocol. process, mcp and host import it.
package approvals
