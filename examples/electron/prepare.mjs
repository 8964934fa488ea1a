// What a checkout of the repository needs before the example can start: the program and the built companion. An app
// of your own takes both from a release instead.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const program = process.platform === "win32" ? "bin/sallyport.exe" : "bin/sallyport";

/** @param {string} command */
const run = (command) => execFileSync(command, { cwd: root, stdio: "inherit", shell: true });

if (!existsSync(root + program)) {
  run("make build");
}
if (!existsSync(root + "companion/dist/esm/index.js")) {
  run("npm --prefix companion ci --ignore-scripts");
  run("npm --prefix companion run build");
}
