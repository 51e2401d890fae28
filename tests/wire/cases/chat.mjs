// Ordinary turns through the hooks.

import { setTimeout as pause } from "node:timers/promises";
import { equal, eventually, ok } from "../lib/expect.mjs";
import { roles, textOf, words } from "../lib/messages.mjs";

export const chat = {
  "chat: send a message and get the streamed answer": async (t) => {
    const tab = await t.tab();
    await tab.ask("N=5 D=20"); // without delays a quick server's answer can come in one piece: no status between
    equal(tab.text, words(5), "text");
    equal(roles(tab.messages), "ua", "roles");
    for (const status of ["submitted", "streaming"]) ok(tab.statuses.includes(status), `never ${status}: ${tab.statuses}`);
    equal(tab.chat.status, "ready", "status");
  },

  "chat: the answer arrives piece by piece": async (t) => {
    const tab = await t.tab();
    await tab.ask("N=20 D=10");
    equal(tab.text, words(20), "text");
    const partial = tab.renderedTexts.size;
    ok(partial >= 8, `only ${partial} different texts were rendered`);
    return `${partial} partial texts`;
  },

  "chat: 500 chunks without delay, in order and complete": async (t) => {
    const tab = await t.tab();
    await tab.ask("N=500", 15_000);
    equal(tab.text, words(500), "text");
  },

  "chat: history is stored and shown after a reload": async (t) => {
    const tab = await t.tab();
    await tab.ask("N=3");
    await tab.ask("ECHO second");
    const ids = tab.messages.map((message) => message.id);
    await tab.close();

    const saved = await t.stored();
    equal(roles(saved), "uaua", "stored roles");
    equal(saved.map((message) => message.id), ids, "stored ids");
    const again = await t.tab();
    await eventually(() => again.messages.length === 4, "four messages after the reload");
    equal(again.messages.map(textOf), ["N=3", words(3), "ECHO second", "second"], "texts");
  },

  "chat: the model sees the history": async (t) => {
    const tab = await t.tab();
    for (const text of ["N=1", "N=1", "COUNT"]) await tab.ask(text);
    equal(tab.text, "users=3", "text");
  },

  "chat: reasoning parts": async (t) => {
    const tab = await t.tab();
    await tab.ask("REASON because");
    equal(tab.last.parts.filter((part) => part.type === "reasoning").map((part) => part.text), ["because"], "reasoning");
    equal(tab.text, "ok", "text");
  },

  "chat: unicode and long text survive": async (t) => {
    const tab = await t.tab();
    const odd = `žluťoučký 🐎 日本語 \u2028 "quoted" \\ back\nnew ${"x".repeat(20_000)}`;
    await tab.ask(`ECHO ${odd}`);
    equal(tab.text, odd, "text");
  },

  "chat: a model error reaches the page, and the next turn works": async (t) => {
    const tab = await t.tab();
    await tab.say("ERROR nope");
    const error = await eventually(() => tab.chat.error, "chat.error");
    ok(String(error.message).includes("nope"), `it says ${error.message}`);
    await tab.say("ECHO fine");
    await tab.answered("fine");
  },

  "chat: onTurnEnd reports a completed turn": async (t) => {
    const tab = await t.tab();
    await tab.ask("N=1");
    await eventually(() => tab.turnEnds.length, "onTurnEnd");
    equal(tab.turnEnds.map((end) => end.outcome), ["completed"], "outcomes");
  },

  "chat: two messages sent back to back are both answered, in order": async (t) => {
    const tab = await t.tab();
    tab.chat.sendMessage({ text: "N=20 D=10" });
    await pause(60); // into the first answer: the second message is sent while it streams
    tab.chat.sendMessage({ text: "ECHO two" });
    const saved = await eventually(async () => {
      const now = await t.stored();
      return ["uaua", "uuaa"].includes(roles(now)) && now;
    }, "both answers to be stored", 8000);
    equal(saved.filter((message) => message.role === "assistant").map(textOf), [words(20), "two"], "answers");
  },
};
