package install

import (
	"context"

	"sallyport/internal/coded"
)

// Vendor says how to make a plugin of an npm package that is none.
type Vendor struct {
	Name, Version string // of the package; the version is exact
	// Bin is the package's program to start; "" takes the one that npx would.
	Bin  string
	Args []string // after the program
	// Env is literal: names and values that a package may set. References and
	// secrets are the operator's and belong into the overlay.
	Env map[string]string
	// Plugin is the plugin's name; "" makes one from the package's.
	Plugin string
	// Lock is a package-lock.json to use instead of resolving anew: with it, the
	// same bundle comes out again. May be nil.
	Lock []byte
}

// VendorNPM stages a plugin that starts a program of an npm package, with the
// package and everything it needs inside the bundle. It is Stage otherwise.
func (i *Installer) VendorNPM(ctx context.Context, vendor Vendor, progress func(Step)) (*Staged, error) {
	return i.stage(ctx, progress, func(ctx context.Context, j *job) error { return j.vendor(ctx, vendor) })
}

func (j *job) npm(context.Context, Source) error {
	return coded.New("source-unknown", "npm packages cannot be installed yet")
}

func (j *job) vendor(context.Context, Vendor) error {
	return coded.New("source-unknown", "npm packages cannot be installed yet")
}
