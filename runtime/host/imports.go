package host

// importedFrom names the entries of a program's file that were imported.
func (h *Host) importedFrom(program, project string) ([]string, error) { return nil, nil }
