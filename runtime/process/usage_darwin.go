package process

// usage counts processes; macOS does not tell the memory of others without C.
func (t *tree) usage(m *Manager) (memory int64, processes int, known bool) {
	return 0, len(t.rest(m)) + 1, true
}
