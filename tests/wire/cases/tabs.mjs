// Several tabs, and lines that break.

import { setTimeout as pause } from "node:timers/promises";
import { equal, eventually, ok } from "../lib/expect.mjs";
import { roles, textOf, words } from "../lib/messages.mjs";

const ids = (tab) => tab.messages.map((message) => message.id);
const answers = (messages) => messages.filter((message) => message.role === "assistant").map(textOf);

export const tabs = {
  "tabs: a second tab watches the stream live": async (t) => {
    const [tab, other] = await t.twoTabs();
    await tab.say("N=30 D=15");
    await other.streamedPast(10);
    ok(other.text.length < words(30).length, "the other tab saw the end only");
    await tab.answered(words(30));
    await other.answered(words(30));
    equal(ids(other), ids(tab), "ids");
  },

  "tabs: both send, both end with the same four messages": async (t) => {
    const [tab, other] = await t.twoTabs();
    await tab.ask("ECHO one");
    await other.answered("one");
    await other.ask("ECHO two");
    await eventually(() => tab.messages.length === 4 && other.messages.length === 4, () => `four in both: ${tab.summary} / ${other.summary}`);
    equal(tab.messages.map(textOf), ["ECHO one", "one", "ECHO two", "two"], "texts");
    equal(ids(other), ids(tab), "ids");
  },

  "tabs: a message sent in one tab while the other's answer streams is answered after it": async (t) => {
    const [tab, other] = await t.twoTabs();
    await tab.say("N=30 D=15");
    await other.streamedPast(10);
    await other.say("ECHO two");
    const saved = await eventually(async () => {
      const now = await t.stored();
      return now.length === 4 && answers(now)[1] && now;
    }, "both answers to be stored");
    equal(answers(saved), [words(30), "two"], "stored answers");
    return roles(saved);
  },

  "resume: the line is cut mid-stream; the answer ends complete, once": async (t) => {
    const tab = await t.tab({}, { minReconnectionDelay: 50, maxReconnectionDelay: 100 });
    await tab.say("N=80 D=20");
    await tab.streamedPast(40);
    equal(tab.cutLine(), 1, "lines cut");
    await tab.answered(words(80), 12_000);
    equal(roles(tab.messages), "ua", "roles");
  },

  "resume: the page is reloaded mid-stream": async (t) => {
    const tab = await t.tab();
    await tab.say("N=80 D=20");
    await tab.streamedPast(40);
    await tab.close();
    const again = await t.tab();
    await again.streamedPast(40);
    ok(again.text.length < words(80).length, "the stream was over already");
    await again.answered(words(80), 12_000);
    equal(roles(again.messages), "ua", "roles");
  },

  "resume: the line is cut and the stream ends meanwhile": async (t) => {
    const tab = await t.tab({}, { minReconnectionDelay: 900, maxReconnectionDelay: 1000 });
    await tab.say("N=30 D=15");
    await tab.streamedPast(20);
    equal(tab.cutLine(), 1, "lines cut");
    await tab.answered(words(30), 8000);
    equal(roles(tab.messages), "ua", "roles");
  },

  "hook: a URL of the app's own has the conversation of the agent that says its name": async (t) => {
    const tab = await t.tab({}, { basePath: "user", query: { user: t.name }, name: "unknown" });
    equal(tab.agent.name, t.name, "the name");
    await tab.ask("N=3");
    equal(roles(await t.stored()), "ua", "stored roles");
    const again = await t.tab({}, { basePath: "user", query: { user: t.name }, name: "unknown" });
    await again.answered(words(3));
  },

  "hook: a refused connection says why": async (t) => {
    const error = await t.refusedTab({ query: { refuse: "403" }, minReconnectionDelay: 10, maxReconnectionDelay: 20 });
    equal([error.code, error.reason], [4403, "Sign in first."], "why");
    await pause(300); // time for many attempts
    equal(t.closedWith(4403), 1, "attempts");
  },

  "hook: state and RPC through useAgent": async (t) => {
    const [tab, other] = await t.twoTabs();
    equal(tab.agent.state, { count: 0 }, "initial state");
    equal(await tab.agent.call("ping"), "pong", "ping");
    tab.agent.setState({ count: 5 });
    await eventually(() => other.agent.state?.count === 5, "the other tab's state");
    equal(await other.agent.stub.increment(2), 7, "stub.increment");
    await eventually(() => tab.agent.state?.count === 7, "the state back here");
  },
};
