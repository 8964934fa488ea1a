package env

import "time"

// processorTime is the time that passes: close enough where it runs alone.
func processorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
