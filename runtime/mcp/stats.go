package mcp

import "sync/atomic"

// Stats is what a connection counted.
type Stats struct {
	Messages             int64 `json:"messages"`
	NoiseLines           int64 `json:"noiseLines"`
	NoiseBytes           int64 `json:"noiseBytes"`
	ByteOrderMarks       int64 `json:"byteOrderMarks"`
	LateAnswers          int64 `json:"lateAnswers"`    // to calls that were given up or answered before
	UnknownAnswers       int64 `json:"unknownAnswers"` // to ids that were never used
	RespelledIDs         int64 `json:"respelledIds"`   // our number came back as a string or a float
	Orphans              int64 `json:"orphans"`        // error answers with a null id
	UnknownNotifications int64 `json:"unknownNotifications"`
	DroppedNotifications int64 `json:"droppedNotifications"`
}

type counters struct {
	messages, noiseLines, noiseBytes, marks            atomic.Int64
	lateAnswers, unknownAnswers, respelledIDs, orphans atomic.Int64
	unknownNotifications, droppedNotifications         atomic.Int64
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	s := &c.stats
	return Stats{
		Messages: s.messages.Load(), NoiseLines: s.noiseLines.Load(), NoiseBytes: s.noiseBytes.Load(),
		ByteOrderMarks: s.marks.Load(), LateAnswers: s.lateAnswers.Load(), UnknownAnswers: s.unknownAnswers.Load(),
		RespelledIDs: s.respelledIDs.Load(), Orphans: s.orphans.Load(),
		UnknownNotifications: s.unknownNotifications.Load(), DroppedNotifications: s.droppedNotifications.Load(),
	}
}
