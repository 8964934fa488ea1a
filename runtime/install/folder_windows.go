package install

// withoutWaiting is nothing here: no pipe lies in a folder.
const withoutWaiting = 0

const nullDevice = "NUL"
