// The bridge: three calls, and no more of Electron, reach the page.
const { contextBridge, ipcRenderer } = require("electron");

contextBridge.exposeInMainWorld("sallyport", {
  view: () => ipcRenderer.invoke("view"),
  review: () => ipcRenderer.invoke("review"),
  again: () => ipcRenderer.invoke("again"),
  /** @param {(view: unknown) => void} listener */
  onView: (listener) => {
    ipcRenderer.on("view", (_event, view) => listener(view));
  },
});
