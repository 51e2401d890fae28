// Messages that are sent while an answer is being made, on an agent that does not queue them.

import { equal, eventually } from "../lib/expect.mjs";
import { textOf, words } from "../lib/messages.mjs";

/** Two tabs on an agent with this strategy, the first in the middle of an answer. */
async function busy(t, strategy) {
  const [asking, other] = await t.twoTabs();
  await asking.agent.call("overlap", [strategy]);
  await asking.say("N=60 D=20");
  await asking.streamedPast(10);
  await eventually(() => other.messages.length > 0, "the other tab to see the question");
  return [asking, other];
}

const said = (tab) => tab.messages.map(textOf);

export const overlap = {
  "overlap: a dropped message goes away again, and its page is ready": async (t) => {
    const [asking, other] = await busy(t, "drop");
    await other.chat.sendMessage({ text: "too early" }); // over with the end of its request
    await eventually(() => !said(other).includes("too early") && other.chat.status === "ready", () => `gone: ${other.summary}`);
    await asking.answered(words(60));
    await eventually(() => other.text === words(60), () => `the answer in the other tab: ${other.summary}`);
    equal((await t.stored()).map(textOf), ["N=60 D=20", words(60)], "stored");
    await other.ask("COUNT");
    equal(other.text, "users=2", "what the model sees");
  },

  "overlap: of those that wait the latest is answered, and the others' pages are ready": async (t) => {
    const [asking, other] = await busy(t, "latest");
    await other.say("first");
    await asking.say("COUNT");
    await eventually(() => other.text === "users=2" && other.idle, () => `the answer: ${other.summary}`);
    await asking.answered("users=2");
    const all = ["N=60 D=20", words(60), "first", "COUNT", "users=2"];
    equal((await t.stored()).map(textOf), all, "stored");
    await eventually(() => said(other).join() === all.join(), () => `shown: ${JSON.stringify(said(other))}`);
  },

  "overlap: merged messages are answered together": async (t) => {
    const [asking, other] = await busy(t, "merge");
    await other.say("first");
    await asking.say("COUNT");
    await asking.answered("users=3");
    await eventually(() => other.text === "users=3" && other.idle, () => `the answer: ${other.summary}`);
    equal((await t.stored()).map(textOf), ["N=60 D=20", words(60), "first", "COUNT", "users=3"], "stored");
  },
};
