//go:build !desktop

package main

import "sallyport/cli"

// wantsWindow: this program has none.
func wantsWindow([]string) bool { return false }

func openWindow([]string, cli.Streams) int { return 2 }
