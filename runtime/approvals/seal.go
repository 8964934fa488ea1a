package approvals

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// seal is an HMAC-SHA-256 over everything that places a document: what it is,
// which one, its bytes, this installation and the epoch it was written in. A row
// that was edited, renamed, or taken from another installation does not verify.
func seal(key []byte, install, kind, id string, epoch int64, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{
		[]byte("sallyport-seal-v1"), []byte(install), []byte(kind), []byte(id),
		strconv.AppendInt(nil, epoch, 10), body,
	} {
		mac.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		mac.Write([]byte{':'})
		mac.Write(part)
	}
	return mac.Sum(nil)
}

func sealText(sum []byte) string { return hex.EncodeToString(sum) }
