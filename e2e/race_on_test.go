//go:build linux && race

package e2e

// withRace: the program is built as the tests are.
const withRace = true
