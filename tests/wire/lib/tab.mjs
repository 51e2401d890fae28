// One tab: a mounted component on useAgent and useAgentChat, and what a person or a case can do with it.

import { setTimeout as pause } from "node:timers/promises";
import { Suspense, createElement } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "agents/react";
import { useAgentChat } from "@cloudflare/think/react";
import { sockets } from "./browser.mjs";
import { eventually } from "./expect.mjs";
import { textOf } from "./messages.mjs";

let tabs = 0;

export class Tab {
  #id = `tab-${process.pid}-${++tabs}`;
  #root = createRoot(document.createElement("div"));
  #hooks = null;
  /** Each text that the newest answer was rendered with. */
  renderedTexts = new Set();
  /** Each status that chat went through. */
  statuses = [];
  /** What onTurnEnd was told. */
  turnEnds = [];

  static async open(server, name, chatOptions, agentOptions) {
    const tab = new Tab();
    tab.#render(server, name, chatOptions, agentOptions);
    await eventually(() => tab.#hooks?.agent.identified, "the tab to show and the agent to say who it is");
    // A message sent before the answer to the hook's first resume probe makes the hook report "ready" in mid-turn.
    // No person is that fast.
    if (chatOptions.resume !== false) {
      await eventually(() => tab.#sockets().some((socket) => socket.resumeAnswered), "the answer to the resume probe");
      await pause(20);
    }
    return tab;
  }

  /** A tab that is not let in, and the error that it shows. */
  static async refused(server, name, agentOptions) {
    const tab = new Tab();
    tab.#render(server, name, {}, agentOptions);
    return [tab, await eventually(() => tab.#hooks?.agent.connectionError, "the connection error")];
  }

  #render(server, name, chatOptions, agentOptions) {
    const Page = () => {
      const agent = useAgent({ ...server.address, name, id: this.#id, ...agentOptions });
      const chat = useAgentChat({ agent, throttle: false, onTurnEnd: (end) => this.turnEnds.push(end), ...chatOptions });
      this.#hooks = { agent, chat };
      this.#record(chat);
      return null;
    };
    this.#root.render(createElement(Suspense, { fallback: null }, createElement(Page)));
  }

  #record({ messages, status }) {
    if (messages.at(-1)?.role === "assistant") this.renderedTexts.add(textOf(messages.at(-1)));
    if (this.statuses.at(-1) !== status) this.statuses.push(status);
  }

  #sockets() {
    return [...sockets].filter((socket) => socket.url.includes(this.#id));
  }

  get agent() {
    return this.#hooks.agent;
  }
  get chat() {
    return this.#hooks.chat;
  }
  get messages() {
    return this.chat.messages;
  }
  get last() {
    return this.messages.at(-1);
  }
  /** The newest answer's text; empty while there is none. */
  get text() {
    return this.last?.role === "assistant" ? textOf(this.last) : "";
  }
  get idle() {
    return ["ready", "error"].includes(this.chat.status) && !this.chat.isStreaming;
  }
  /** What a failing case shows. */
  get summary() {
    const roles = this.messages.map((message) => message.role[0]).join("");
    return `[${roles}] status ${this.chat.status}, text ${JSON.stringify(this.text.slice(-80))}`;
  }

  /** Sends, and waits until the message shows. */
  async say(text) {
    const before = this.messages.length;
    this.chat.sendMessage({ text });
    await eventually(() => this.messages.length > before, `the message "${text}" to show`);
  }

  /** Sends, and waits until the turn is over. */
  async ask(text, ms) {
    await this.say(text);
    await eventually(() => this.idle && this.last?.role === "assistant", () => `the answer to "${text}": ${this.summary}`, ms);
  }

  /** Waits until the newest answer is `text` and the turn is over. */
  async answered(text, ms) {
    await eventually(() => this.text === text && this.idle, () => `the answer ${JSON.stringify(text.slice(-80))}: ${this.summary}`, ms);
  }

  /** Waits until the newest answer has more than `length` characters. */
  async streamedPast(length) {
    await eventually(() => this.text.length > length, () => `more than ${length} characters: ${this.summary}`);
  }

  /** Cuts the tab's line without a goodbye. */
  cutLine() {
    const cut = this.#sockets();
    for (const socket of cut) socket.terminate();
    return cut.length;
  }

  async close() {
    this.#root.unmount();
    await pause(10);
  }
}
