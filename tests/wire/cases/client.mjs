// AgentClient: identity, state, callables, and the plain HTTP route.

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

  "http: get-messages of an unused agent is an empty list": async (t) => {
    const response = await t.fetch("get-messages");
    equal(response.status, 200, "status");
    equal(await response.json(), [], "body");
  },
};
