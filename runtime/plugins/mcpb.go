package plugins

// mcpbFile is the manifest of an MCP bundle.
const mcpbFile = "manifest.json"

// isMCPB tells an MCP bundle from the many other files of that name.
func isMCPB(root *node) bool {
	version := root.get("manifest_version")
	if version == nil {
		version = root.get("dxt_version")
	}
	return version != nil && version.kind == '"'
}

// readMCPB is not there yet.
func (b *bundle) readMCPB(p *Plugin, _ []byte) {
	p.reject(Problem{Code: "format-unsupported", Path: mcpbFile, Sentence: "MCP bundles are not read yet"})
}
