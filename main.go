// Command sallyport runs third-party agent plugins only as a person approved
// them. Built without tags it is the headless program: the commands and the
// sidecar. With the tag desktop it has the window too, and opens it where it is
// started without arguments or with an address of sallyport://.
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
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if wantsWindow(os.Args[1:]) {
		os.Exit(openWindow(os.Args[1:], streams))
	}
	os.Exit(cli.Run(context.Background(), buildinfo.Read(), os.Args[1:], streams))
}
