// Command sallyport runs third-party agent plugins only as a person approved
// them. Built without tags it is the headless program: the commands and the
// sidecar.
package main

import (
	"context"
	"os"

	"sallyport/cli"
	"sallyport/internal/buildinfo"
	"sallyport/runtime/process"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	os.Exit(cli.Run(context.Background(), buildinfo.Read(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
