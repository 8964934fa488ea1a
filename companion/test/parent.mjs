// A parent, to be killed: it says which sidecar it has, and stays.
import { startSallyport } from "@sallyport/companion";

const [, , binary = "", dataDir = ""] = process.argv;
const one = await startSallyport({ binary, dataDir });
if (one.state.name !== "ready" && one.state.name !== "attached") {
  throw new Error(one.state.name);
}
console.log(one.state.pid);
