// Package keyringtest runs a session bus and gnome-keyring-daemon for tests, each
// with a home, a runtime folder and a socket of its own.
//
// The one idea: a test asks for the situation by its name (unlocked, locked, no
// provider, never answering) and gets the environment that a program needs to see
// it; nothing of the user's own session is touched, and all of it ends with the
// test.
//
// It installs nothing: where the programs are missing the test fails and says
// what to install. Tests alone import it, on Linux.
package keyringtest
