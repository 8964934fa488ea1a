// Command fakeserver is the program of package fakeserver.
package main

import (
	"os"

	"sallyport/internal/fakeserver"
)

func main() { os.Exit(fakeserver.Main(os.Args)) }
