package process

// canEnforce: macOS does not tell the memory and the processor time of others without
// C, and its limits of one process do not bound what is mapped.
func canEnforce() enforced { return enforced{openFiles: true, processes: true} }

// usage counts processes.
func (t *tree) usage(m *Manager) usage { return usage{processes: len(t.rest(m)) + 1} }
