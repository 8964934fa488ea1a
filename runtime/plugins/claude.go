package plugins

func (b *bundle) readClaude(p *Plugin, _ []byte) {
	p.reject(Problem{Code: "format-unsupported", Path: p.Manifest, Sentence: "not yet"})
}
func (b *bundle) readCodex(p *Plugin, _ []byte) {
	p.reject(Problem{Code: "format-unsupported", Path: p.Manifest, Sentence: "not yet"})
}
