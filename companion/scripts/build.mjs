// Builds the package: the types of the API, generated, then both module systems.
//   node scripts/build.mjs           builds dist/
//   node scripts/build.mjs --schema  only brings src/schema.ts up to date, for an editor
import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");

// Copied at every build, so that it cannot be an old one.
copyFileSync(join(root, "..", "api", "ts", "schema.d.ts"), join(root, "src", "schema.ts"));
if (process.argv.includes("--schema")) {
  process.exit();
}
rmSync(join(root, "dist"), { recursive: true, force: true });
for (const project of ["tsconfig.json", "tsconfig.cjs.json"]) {
  execFileSync(process.execPath, [tsc, "-p", join(root, project)], { stdio: "inherit" });
}
// Below a package that is "module", only this makes the other half what it is.
writeFileSync(join(root, "dist", "cjs", "package.json"), '{ "type": "commonjs" }\n');
