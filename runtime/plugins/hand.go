package plugins

// handFile is where connectors are that have no bundle.
const handFile = "connectors.json"
