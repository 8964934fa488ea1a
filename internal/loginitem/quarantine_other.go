//go:build !darwin

package loginitem

// quarantined: only macOS has a quarantine that survives the first start.
func quarantined(string) bool { return false }
