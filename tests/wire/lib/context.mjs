// What a case is given: tabs and clients on a conversation of its own, closed after it.

import { AgentClient, agentFetch } from "agents/client";
import { getAgentMessages } from "@cloudflare/think/react";
import { frames, sockets } from "./browser.mjs";
import { Tab } from "./tab.mjs";

const RUN = Date.now().toString(36);
let conversations = 0;

/** Where the server is and which agent class is asked, as the clients want it. */
export class Server {
  constructor(url, agent) {
    this.url = new URL(url);
    this.address = { agent, host: this.url.host, protocol: this.url.protocol === "https:" ? "wss" : "ws" };
    /** The class in URLs. */
    this.path = agent.replaceAll(/[A-Z]/g, (letter, at) => (at ? "-" : "") + letter.toLowerCase());
  }
}

export class Context {
  #server;
  #opened = [];

  constructor(server) {
    this.#server = server;
    /** The case's conversation: a name that no other case has. */
    this.name = `wire-${RUN}-${++conversations}`;
    this.agentPath = server.path;
  }

  /** Opens a tab on the case's conversation. */
  async tab(chatOptions = {}, agentOptions = {}) {
    const tab = await Tab.open(this.#server, this.name, chatOptions, agentOptions);
    this.#opened.push(tab);
    return tab;
  }

  /** Opens a tab that is not let in. Gives the error that it shows. */
  async refusedTab(agentOptions) {
    const [tab, error] = await Tab.refused(this.#server, this.name, agentOptions);
    this.#opened.push(tab);
    return error;
  }

  /** Two tabs on the case's conversation. */
  async twoTabs() {
    return [await this.tab(), await this.tab()];
  }

  /** An AgentClient, which is not connected yet when it is given. */
  client(options = {}) {
    const client = new AgentClient({ ...this.#server.address, name: this.name, ...options });
    this.#opened.push(client);
    return client;
  }

  async readyClient(options = {}) {
    const client = this.client(options);
    await client.ready;
    return client;
  }

  /** The stored messages. */
  stored() {
    return getAgentMessages({ host: this.#server.url.origin, agent: this.#server.address.agent, name: this.name });
  }

  /** GET of a path below the agent, with the published client. */
  fetch(path) {
    const { host } = this.#server.url;
    return agentFetch({ agent: this.agentPath, name: this.name, host, protocol: this.#server.url.protocol.slice(0, -1), path });
  }

  /** Cuts every line of the conversation without a goodbye. */
  cutLines() {
    const mine = [...sockets].filter((socket) => new URL(socket.url).pathname.endsWith(`/${this.name}`));
    for (const socket of mine) socket.terminate();
    return mine.length;
  }

  /** How many lines were closed with this code since the case began. */
  closedWith(code) {
    return frames.filter((line) => line.endsWith(`closed ${code}`)).length;
  }

  async close() {
    for (const one of this.#opened.splice(0)) await one.close();
  }
}
