package install

import (
	"context"
	"path/filepath"

	"sallyport/runtime/artifact"
)

// PreviousDigest digests the version that Undo would put back, as it is on disk now.
func (i *Installer) PreviousDigest(ctx context.Context, name string) (artifact.Digest, error) {
	if _, err := i.installedShelf(name); err != nil {
		return "", err
	}
	tree, err := artifact.Of(ctx, filepath.Join(i.config.Previous, name), artifact.Options{Limits: i.config.Limits})
	if err != nil {
		return "", err
	}
	return tree.Digest, nil
}
