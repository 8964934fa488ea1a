package install

import (
	"context"

	"sallyport/internal/coded"
)

func (j *job) git(context.Context, Source) error {
	return coded.New("source-unknown", "git commits cannot be installed yet")
}
