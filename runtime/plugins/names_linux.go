package plugins

// foldsCase says whether the system's usual file systems find a name in any case.
const foldsCase = false
