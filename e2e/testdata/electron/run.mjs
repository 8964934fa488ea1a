// Loads an app's main module, as "electron ." does.
import { pathToFileURL } from "node:url";
import { app } from "./index.mjs";

await import(pathToFileURL(process.argv[2]).href);
app.codeLoaded();
