// The browser that the clients believe in: jsdom for the page, `ws` for its WebSocket. Nothing else is replaced.
// Import this before React and the clients: they look for `window` when they load.

import { JSDOM } from "jsdom";
import WebSocket from "ws";

/** Every socket that is open now. */
export const sockets = new Set();
/** What went over them since `frames.length = 0`. */
export const frames = [];

let opened = 0;

class PageSocket extends WebSocket {
  constructor(...args) {
    super(...args);
    this.number = ++opened;
    this.resumeAnswered = false;
    sockets.add(this);
    this.on("error", () => {}); // the client hears of it; without a listener `ws` would end the process
    this.on("close", (code) => {
      sockets.delete(this);
      this.note("closed", String(code));
    });
    this.on("message", (data) => {
      this.note("<", String(data));
      if (/"cf_agent_stream_(resume_none|resuming|pending)"/.test(data)) this.resumeAnswered = true;
    });
  }

  send(data, ...rest) {
    this.note(">", String(data));
    super.send(data, ...rest);
  }

  note(direction, text) {
    frames.push(`${(performance.now() / 1000).toFixed(3)} #${this.number} ${direction} ${text.slice(0, 400)}`);
  }
}

export function openBrowser(origin) {
  const { window } = new JSDOM("<!doctype html><body></body>", { url: origin });
  window.WebSocket = PageSocket;
  const globals = { window, WebSocket: PageSocket, IS_REACT_ACT_ENVIRONMENT: false };
  for (const name of ["document", "navigator", "HTMLElement", "HTMLIFrameElement", "Node", "CloseEvent", "MessageEvent"]) {
    if (name === "document" || name === "navigator" || !(name in globalThis)) globals[name] = window[name];
  }
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
}
