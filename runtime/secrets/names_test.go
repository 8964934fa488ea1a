package secrets

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// list is the host's list of names, in memory.
type list struct {
	mu    sync.Mutex
	names map[string]Name
}

func newList(names ...string) *list {
	l := &list{names: map[string]Name{}}
	for _, name := range names {
		l.names[name] = Name{Name: name}
	}
	return l
}

func (l *list) Names(context.Context) ([]Name, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.names)), nil
}

func (l *list) Put(_ context.Context, name Name) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[name.Name] = name
	return nil
}

func (l *list) Drop(_ context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
	return nil
}
