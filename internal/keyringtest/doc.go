// Package keyringtest makes logins of their own for tests on Linux: a session bus and
// gnome-keyring on it, locked, unlocked or not answering.
//
// Nothing of the user's own session is touched, and all of it ends with the test. It
// imports nothing of Sallyport's. Tests alone import it.
package keyringtest
