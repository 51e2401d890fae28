// Stopping, clearing, regenerating, editing, attaching.

import { setTimeout as pause } from "node:timers/promises";
import { equal, eventually, ok } from "../lib/expect.mjs";
import { roles, textOf, words } from "../lib/messages.mjs";

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export const control = {
  "stop: ends the stream, keeps the partial text, and the next turn works": async (t) => {
    const tab = await t.tab();
    await tab.say("N=200 D=20");
    await tab.streamedPast(20);
    tab.chat.stop();
    await eventually(() => tab.idle, "idle after stop", 3000);
    const stopped = tab.text.length;
    await pause(400); // twenty words' time: what still comes was on its way
    ok(tab.text.length - stopped <= 12, `the text grew from ${stopped} to ${tab.text.length} after stop`);

    const saved = await eventually(async () => {
      const now = await t.stored();
      return roles(now) === "ua" && now;
    }, "the partial answer to be stored", 3000);
    ok(textOf(saved[1]).length < words(200).length, "the stored answer is complete");
    await tab.ask("ECHO go on");
    equal(tab.text, "go on", "the next turn");
  },

  "clear: empties both tabs and the store": async (t) => {
    const [tab, other] = await t.twoTabs();
    await tab.ask("N=2");
    await eventually(() => other.messages.length === 2, "the other tab to have both messages");
    tab.chat.clearHistory();
    await eventually(() => tab.messages.length === 0, "this tab to be empty");
    await eventually(() => other.messages.length === 0, "the other tab to be empty");
    equal(await t.stored(), [], "stored");
    await tab.ask("COUNT");
    equal(tab.text, "users=1", "what the model sees after it");
  },

  "regenerate: replaces the last answer": async (t) => {
    const tab = await t.tab();
    await tab.ask("N=1");
    await tab.ask("N=4");
    const old = tab.last.id;
    tab.chat.regenerate();
    await eventually(() => tab.idle && tab.text === words(4) && tab.last.id !== old, () => `a new answer: ${tab.summary}`);
    equal(roles(tab.messages), "uaua", "roles");
    const saved = await eventually(async () => {
      const now = await t.stored();
      return now.at(-1)?.id === tab.last.id && now;
    }, "the new answer to be stored");
    equal(roles(saved), "uaua", "stored roles");
    await tab.ask("COUNT");
    equal(tab.text, "users=3", "what the model sees");
  },

  "regenerate: an earlier answer, dropping what came after it": async (t) => {
    const tab = await t.tab();
    await tab.ask("N=2");
    await tab.ask("ECHO later");
    const old = tab.messages[1].id;
    tab.chat.regenerate({ messageId: old });
    await eventually(
      () => tab.idle && tab.messages.length === 2 && tab.text === words(2) && tab.last.id !== old,
      () => `a new first answer: ${tab.summary}`,
    );
    await eventually(async () => roles(await t.stored()) === "ua", "the store to agree");
  },

  // The original keeps the later messages and lets the model go on after them; a person expects an answer to the edit.
  "edit: an edited user message is answered; what came after it is off the active path": async (t) => {
    const tab = await t.tab();
    await tab.ask("ECHO first");
    await tab.ask("ECHO second");
    tab.chat.sendMessage({ text: "ECHO edited", messageId: tab.messages[0].id });
    const saved = await eventually(async () => {
      const now = await t.stored();
      return roles(now) === "ua" && textOf(now[1]) === "edited" && now;
    }, "the edited message and its answer");
    equal(saved.map(textOf), ["ECHO edited", "edited"], "stored texts");
  },

  "image: a file part is stored and sent along": async (t) => {
    const tab = await t.tab();
    const picture = { type: "file", mediaType: "image/png", url: PIXEL };
    tab.chat.sendMessage({ role: "user", parts: [{ type: "text", text: "ECHO seen" }, picture] });
    await tab.answered("seen");
    const [sent] = await t.stored();
    equal(sent.parts.filter((part) => part.type === "file").map((part) => part.mediaType), ["image/png"], "stored file parts");
  },
};
