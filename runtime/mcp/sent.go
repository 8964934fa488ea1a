package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// SentSum is "sha256:" and the hex SHA-256 of the params of a call as they are sent,
// every byte of them but the progress token: the server gets the call's own number in
// its place, and agents write another one each time (spec/permissions.md 4). Params
// that Call would refuse are refused.
func SentSum(params json.RawMessage) (string, error) {
	from, to := 0, 0
	if len(params) > 0 {
		var err error
		if from, to, err = findToken(params); err != nil {
			return "", err
		}
	}
	sum := sha256.New()
	sum.Write(params[:from])
	if to > from {
		sum.Write([]byte{0}) // in no JSON text: where the token stood counts
	}
	sum.Write(params[to:])
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
