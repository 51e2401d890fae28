// AgentClient: identity, state, callables, and the plain HTTP route.

import { setTimeout as pause } from "node:timers/promises";
import { equal, eventually, ok, rejection } from "../lib/expect.mjs";

export const client = {
  "client: identity on connect": async (t) => {
    const told = [];
    const c = await t.readyClient({ onIdentity: (...who) => told.push(who) });
    ok(c.identified, "identified is false");
    equal(told, [[t.name, t.agentPath]], "onIdentity");
  },

  "client: initial state arrives before ready": async (t) => {
    const c = t.client();
    let ready = false;
    c.ready.then(() => (ready = true));
    await eventually(() => ready, "ready", 5000);
    equal(c.state, { count: 0 }, "state");
  },

  "client: callable RPC with result, arguments, undefined method": async (t) => {
    const c = await t.readyClient();
    equal(await c.call("ping"), "pong", "ping");
    equal(await c.call("sum", [2, 3]), 5, "sum");
    equal(await c.stub.sum(20, 22), 42, "stub.sum");
    const error = await rejection(c.call("nosuch", []));
    ok(error instanceof Error, "the rejection is no Error");
    return `missing method: ${error.message}`;
  },

  "client: a throwing callable rejects with its message": async (t) => {
    const c = await t.readyClient();
    const error = await rejection(c.call("fail", ["kaput"]));
    ok(String(error.message).includes("kaput"), `it says ${error.message}`);
  },

  "client: streaming callable": async (t) => {
    const c = await t.readyClient();
    const chunks = [];
    const ends = [];
    await c.call("countTo", [5], { stream: { onChunk: (chunk) => chunks.push(chunk), onDone: (end) => ends.push(end) } });
    await eventually(() => ends.length, "onDone");
    equal(chunks, [1, 2, 3, 4, 5], "chunks");
    equal(ends, [5], "ends");
  },

  "client: ten RPC calls in flight at once": async (t) => {
    const c = await t.readyClient();
    const numbers = [...Array(10).keys()];
    const sums = await Promise.all(numbers.map((n) => c.call("sum", [n, 1])));
    equal(sums, numbers.map((n) => n + 1), "results");
  },

  "client: state set by one client reaches the other": async (t) => {
    const sources = [];
    const [a, b] = await Promise.all([t.readyClient(), t.readyClient({ onStateUpdate: (_, source) => sources.push(source) })]);
    a.setState({ count: 7, note: "hi" });
    await eventually(() => b.state?.count === 7, "the other client to have it");
    equal(b.state, { count: 7, note: "hi" }, "state");
    equal(sources.at(-1), "server", "source");
  },

  "client: state set by the server (callable) reaches all, and persists": async (t) => {
    const [a, b] = await Promise.all([t.readyClient(), t.readyClient()]);
    equal(await a.call("increment", [3]), 3, "increment");
    await eventually(() => a.state?.count === 3 && b.state?.count === 3, "both to have it");
    a.close();
    b.close();
    equal((await t.readyClient()).state, { count: 3 }, "state of a new connection");
  },

  "client: reconnects after the line is cut, and calls work again": async (t) => {
    const c = await t.readyClient({ minReconnectionDelay: 50, maxReconnectionDelay: 100 });
    await c.call("increment", [1]);
    equal(t.cutLines(), 1, "lines cut");
    await eventually(() => !c.identified, "the client to notice");
    await eventually(() => c.identified, "the client to be back");
    equal(await c.call("increment", [1]), 2, "increment");
  },

  "client: a call made while the line is down goes out when it is back": async (t) => {
    const c = await t.readyClient({ minReconnectionDelay: 300, maxReconnectionDelay: 400 });
    equal(t.cutLines(), 1, "lines cut");
    await eventually(() => !c.identified, "the client to notice");
    const calls = [c.call("increment", [1]), c.call("increment", [1])];
    ok(c.readyState !== WebSocket.OPEN, "the line is back already");
    equal(await Promise.all(calls), [1, 2], "what the calls give");
    equal(await c.call("increment", [1]), 3, "a call after that");
  },

  "client: a call that was sent when the line breaks is rejected": async (t) => {
    const c = await t.readyClient({ minReconnectionDelay: 50, maxReconnectionDelay: 100 });
    const sent = rejection(c.call("never"));
    equal(await c.call("ping"), "pong", "a call beside it");
    t.cutLines();
    equal((await sent).message, "Connection closed", "why it is rejected");
    await eventually(() => c.identified, "the client to be back");
    equal(await c.call("ping"), "pong", "a call after that");
  },

  "client: a URL of the app's own leads to an agent that says its name": async (t) => {
    const told = [];
    const options = { basePath: "user", query: { user: t.name }, name: "unknown", onIdentity: (...who) => told.push(who) };
    const c = await t.readyClient(options);
    equal(new URL(c.url).pathname, "/user", "where it connects to");
    equal([c.name, told], [t.name, [[t.name, t.agentPath]]], "who answers");
    equal(await c.call("increment", [2]), 2, "increment");
    equal(await (await t.readyClient()).call("increment", [1]), 3, "increment at its usual address");
  },

  "client: a refused connection says why and is not tried again": async (t) => {
    const errors = [];
    const options = { minReconnectionDelay: 10, maxReconnectionDelay: 20, onConnectionError: (error) => errors.push(error) };
    const c = t.client({ ...options, query: { refuse: "401" } });
    const call = rejection(c.call("ping"));
    await eventually(() => c.connectionError, "the connection error");
    equal([c.connectionError.code, c.connectionError.reason], [4401, "Sign in first."], "why");
    equal((await call).message, "Connection closed", "what becomes of a call");
    await pause(300); // time for many attempts
    equal([errors.length, t.closedWith(4401)], [1, 1], "attempts");
  },

  "http: get-messages of an unused agent is an empty list": async (t) => {
    const response = await t.fetch("get-messages");
    equal(response.status, 200, "status");
    equal(await response.json(), [], "body");
  },
};
