// A stand-in for Electron's main process, for a test of examples/electron: it has what the example uses, keeps to what
// Electron promises of it, and is driven by lines on stdin ("invoke CHANNEL", "foreign CHANNEL", "quit"). What happens
// is said on stdout, one JSON line each.
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const say = (what) => console.log(JSON.stringify(what));

function resolvers() {
  let resolve;
  return { promise: new Promise((r) => (resolve = r)), resolve: () => resolve() };
}

class App extends EventEmitter {
  isPackaged = false;
  #quit = false;
  #loaded = resolvers();
  codeLoaded() {
    this.#loaded.resolve();
  }
  requestSingleInstanceLock() {
    return true;
  }
  getPath(name) {
    return `${process.env.ELECTRON_USER_DATA}/${name}`;
  }
  async whenReady() {
    await this.#loaded.promise; // as Electron does: not before the app's module has come to its end
  }
  quit() {
    if (this.#quit) {
      return;
    }
    let prevented = false;
    this.emit("before-quit", { preventDefault: () => (prevented = true) });
    if (!prevented) {
      this.#quit = true;
      say({ event: "quit" });
      process.exit(0);
    }
  }
}

export const app = new App();

const windows = [];
const handlers = new Map();

export class BrowserWindow {
  webContents = {
    send: (channel, value) => say({ event: channel, value }),
    url: "",
  };
  constructor(options) {
    const { contextIsolation, sandbox, nodeIntegration } = options.webPreferences;
    say({ event: "window", contextIsolation, sandbox, nodeIntegration });
    windows.push(this);
  }
  static getAllWindows() {
    return [...windows];
  }
  async loadFile(path) {
    this.webContents.url = pathToFileURL(path).href;
    say({ event: "loaded" });
  }
  show() {}
  focus() {}
}

export const ipcMain = {
  handle: (channel, handler) => handlers.set(channel, handler),
};

export const session = { defaultSession: { setPermissionRequestHandler() {} } };

async function invoke(channel, url) {
  try {
    say({ event: "answer", value: await handlers.get(channel)({ senderFrame: { url } }) });
  } catch (error) {
    say({ event: "answer", error: error.message });
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const [word, channel] = line.split(" ");
  if (word === "quit") {
    app.quit();
  } else {
    void invoke(channel, word === "invoke" ? windows[0].webContents.url : "https://example.com/");
  }
});
