// Package e2e tests the built program from outside: as a person at a terminal, as
// an agent, as the official servers, clients and suites see it.
//
// The one idea: every test has a home folder of its own and a real process of the
// program that is shipped; nothing of it is replaced, and nothing of it may be
// left running when the test ends.
//
// It holds tests alone, for Linux. Nobody imports it.
package e2e
