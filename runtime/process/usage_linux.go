package process

import (
	"os"
	"strconv"
	"strings"
)

// usage adds up the resident memory, in bytes, and counts the processes of the tree.
func (t *tree) usage(m *Manager) (memory int64, processes int, known bool) {
	pids := append(t.rest(m), t.pid)
	page := int64(os.Getpagesize())
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 3 {
			continue
		}
		resident, _ := strconv.ParseInt(fields[1], 10, 64)
		shared, _ := strconv.ParseInt(fields[2], 10, 64)
		memory += (resident - shared) * page
	}
	return memory, len(pids), true
}
