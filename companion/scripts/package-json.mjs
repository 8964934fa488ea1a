// Turns package.json into that of the package: with its version, without what only development needs.
//   node scripts/package-json.mjs VERSION
import { readFileSync, writeFileSync } from "node:fs";

const [, , version] = process.argv;
if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version ?? "")) {
  throw new Error(`${version} is no version of an npm package, such as 1.2.3`);
}
const { devDependencies, scripts, ...kept } = JSON.parse(readFileSync("package.json", "utf8"));
writeFileSync("package.json", JSON.stringify({ ...kept, version }, null, 2) + "\n");
