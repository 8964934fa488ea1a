// The main process: one window, one Sallyport. The page is told what to show and may ask for two things; it never sees
// an address, a token or a path.
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Sallyport } from "@sallyport/companion";
import { app, BrowserWindow, ipcMain, session } from "electron";
import { view } from "./view.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const page = join(here, "index.html");
const name = process.platform === "win32" ? "sallyport.exe" : "sallyport";

if (!app.requestSingleInstanceLock()) {
  app.quit(); // the first one raises its window
} else {
  app.on("second-instance", () => showWindow());
  app.on("window-all-closed", () => app.quit());
  // Not awaited here: Electron is ready only once this module has been loaded to its end.
  void app.whenReady().then(begin);
}

function begin() {
  const sallyport = new Sallyport({
    // Packaged, the program lies beside the app by extraResources (docs/guide/electron.md).
    binary: app.isPackaged
      ? join(process.resourcesPath, "sallyport", name)
      : (process.env["SALLYPORT_BINARY"] ?? join(here, "..", "..", "bin", name)),
    dataDir: join(app.getPath("userData"), "sallyport"),
    onLog: (line) => console.error(line),
  });
  /** @type {Map<string, string>} */
  const waiting = new Map(); // open questions: id and what they are about

  const show = () => {
    for (const window of BrowserWindow.getAllWindows()) {
      window.webContents.send("view", view(sallyport.state, [...waiting.values()]));
    }
  };
  sallyport.onState(show);

  async function start() {
    try {
      await sallyport.start();
      for await (const { type, decision } of sallyport.watchDecisions()) {
        if (type === "opened") {
          waiting.set(decision.id, decision.subject);
        } else {
          waiting.delete(decision.id);
        }
        show();
      }
    } catch (error) {
      console.error(error instanceof Error ? error.message : error); // the state says it to the person
    }
    waiting.clear();
  }

  answer("view", () => view(sallyport.state, [...waiting.values()]));
  answer("review", () => sallyport.openReview([...waiting.keys()].at(-1)));
  answer("again", () => void start());

  let stopped = false;
  app.on("before-quit", (event) => {
    if (stopped) {
      return;
    }
    event.preventDefault(); // until the sidecar and its plugins are gone
    void sallyport.stop({ signal: AbortSignal.timeout(15_000) }).then(() => {
      stopped = true;
      app.quit();
    });
  });

  lockDown();
  showWindow();
  void start();
}

/**
 * Answers the page, and nobody else.
 * @param {string} channel
 * @param {() => unknown} what
 */
function answer(channel, what) {
  ipcMain.handle(channel, async (event) => {
    if (event.senderFrame?.url !== pathToFileURL(page).href) {
      throw new Error("only the page of this app may ask");
    }
    try {
      return { ok: true, value: await what() };
    } catch (error) {
      return { ok: false, message: error instanceof Error ? error.message : "it did not work" };
    }
  });
}

/** The page needs no right of a browser's, goes nowhere and opens nothing. */
function lockDown() {
  session.defaultSession.setPermissionRequestHandler((_contents, _permission, decide) => decide(false));
  app.on("web-contents-created", (_event, contents) => {
    contents.on("will-navigate", (event) => event.preventDefault());
    contents.setWindowOpenHandler(() => ({ action: "deny" }));
  });
}

function showWindow() {
  const [open] = BrowserWindow.getAllWindows();
  if (open !== undefined) {
    open.show();
    open.focus();
    return;
  }
  const window = new BrowserWindow({
    width: 520,
    height: 360,
    title: "Sallyport in Electron",
    webPreferences: {
      preload: join(here, "preload.cjs"),
      contextIsolation: true,
      sandbox: true,
      nodeIntegration: false,
    },
  });
  void window.loadFile(page);
}
