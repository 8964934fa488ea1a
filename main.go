// Command sallyport runs third-party agent plugins only as a person approved
// them. Built without tags it is the headless program: the commands and the
// sidecar.
package main

import (
	"context"
	"os"

	"sallyport/cli"
	"sallyport/runtime/process"
)

// version is stamped at build time: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	os.Exit(cli.Run(context.Background(), version, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
