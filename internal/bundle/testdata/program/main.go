// Command program stands in for Sallyport in tests of bundles.
package main

import (
	"fmt"

	"sallyport/internal/buildinfo"
)

func main() { fmt.Println(buildinfo.Read().Version) }
