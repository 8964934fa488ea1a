//go:build !linux && !darwin

package bundle

// attributes are something that this system does not have.
func attributes(string) ([]string, error) { return nil, nil }
