package mcp

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestAServersErrorIsNotLoggedInItsOwnWords: it may repeat a secret that it was given, and
// no secret is in the log.
func TestAServersErrorIsNotLoggedInItsOwnWords(t *testing.T) {
	var err error = &RPCError{Code: -32000, Message: "the key hunter2 is wrong"}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("cannot list resources", "error", err)
	if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "-32000") {
		t.Errorf("the log says %s", log.String())
	}
}
