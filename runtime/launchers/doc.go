// Package launchers recognises command lines that fetch code when they start:
// npx, uvx, docker run and their kind.
//
// The one idea: approving a launcher does not approve what it launches. So a
// command line is read as its launcher would read it, through wrappers and
// shells, and says what would be fetched and how firmly that is named.
//
// It runs nothing, asks no registry and decides nothing. A command line that it
// does not recognise is not thereby safe: it may fetch all the same (SECURITY.md).
// approvals and cli import it.
package launchers
