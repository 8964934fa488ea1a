// Package approvals decides what may run: who agreed to which exact identity.
//
// The one idea: the check is a value. Starting a process, dialling and calling
// each take a Grant (or CallGrant); only this package makes one, after comparing
// the identity resolved now with the approved one (spec/approval.md 5).
//
// It starts nothing and speaks no protocol. process, mcp and host import it.
package approvals
