import { expect, test } from "vitest";
import { type ToolPart, questionOf, viewOf, waitingFor } from "../src/lib/calls";
import { EXPIRED, INTERRUPTED, NOT_RUN } from "../src/lib/serverTexts";

function part(tool: string, state: ToolPart["state"], more: object = {}): ToolPart {
  return { type: `tool-${tool}`, toolCallId: "c1", state, input: {}, ...more } as ToolPart;
}

const IDLE = { last: true, running: false, undecided: false };
const RUNNING = { ...IDLE, running: true };
const PAST = { ...IDLE, last: false };

test.each([
  ["a call that nobody here can tell apart runs while its turn does", part("x", "input-available"), RUNNING, "Running", undefined],
  ["and waits for an answer when the turn is over", part("x", "input-available"), IDLE, "Waiting for an answer", "answer"],
  ["a tool of the page is the page's, also while the turn runs", part("getLocalTime", "input-available"), RUNNING, "Waiting for this browser", "browser"],
  ["a question whether it may run", part("x", "approval-requested"), RUNNING, "Needs approval", "approval"],
  ["one that was approved, as its turn runs", part("x", "approval-responded", { approval: { approved: true } }), RUNNING, "Approved, running", undefined],
  ["one that was approved, and is for somebody else to answer", part("x", "approval-responded", { approval: { approved: true } }), IDLE, "Approved", "answer"],
  ["one that was approved, while another is asked about", part("x", "approval-responded", { approval: { approved: true } }), { ...IDLE, undecided: true }, "Approved", undefined],
  ["one of the page's that was approved", part("get_browser_details", "approval-responded", { approval: { approved: true } }), IDLE, "Waiting for this browser", "browser"],
  ["a no that the server has not confirmed", part("x", "approval-responded", { approval: { approved: false } }), IDLE, "Denied", undefined],
  ["a no", part("x", "output-denied", { approval: { approved: false, reason: "No." } }), IDLE, "Denied", undefined],
  ["a no of the clock", part("x", "output-denied", { approval: { approved: false, reason: EXPIRED } }), IDLE, "Expired", undefined],
  ["progress", part("x", "output-available", { preliminary: true }), RUNNING, "Running", undefined],
  ["a result", part("x", "output-available"), IDLE, "Done", undefined],
  ["an error", part("x", "output-error", { errorText: "Boom." }), IDLE, "Failed", undefined],
  ["a tool of the server that was cut off", part("x", "output-error", { errorText: INTERRUPTED }), PAST, "Interrupted", undefined],
  ["an approval that nobody gave", part("x", "output-error", { errorText: INTERRUPTED, approval: { id: "a" } }), PAST, "Not answered", undefined],
  ["an approved call that was cut off", part("x", "output-error", { errorText: INTERRUPTED, approval: { approved: true } }), PAST, "Interrupted", undefined],
  ["an approved call that never began", part("x", "output-error", { errorText: NOT_RUN, approval: { approved: true } }), PAST, "Not run", undefined],
  ["a tool of the page that no page answered", part("getLocalTime", "output-error", { errorText: INTERRUPTED }), PAST, "Not answered", undefined],
  ["a question that nobody answered", part("x", "output-error", { errorText: INTERRUPTED, input: { question: "Tea?" } }), PAST, "Not answered", undefined],
  ["a call of an older message, whatever it says", part("x", "approval-requested"), PAST, "Not answered", undefined],
])("%s", (_, call, situation, label, waits) => {
  expect(viewOf(call, situation)).toMatchObject({ label });
  expect(viewOf(call, situation).waits).toBe(waits);
});

test("what the conversation waits for is said in one sentence", () => {
  expect(waitingFor([])).toBe("");
  expect(waitingFor([part("x", "output-available")])).toBe("");
  const approved = part("c", "approval-responded", { approval: { approved: true } });
  const open = [part("ask", "input-available"), part("a", "approval-requested"), part("b", "approval-requested"), approved];
  expect(waitingFor(open)).toBe("Waiting for your approval of a, b, and your answer to ask");
  expect(waitingFor([approved])).toBe("Waiting for your answer to c");
});

test("only a text is a question, and only texts are its answers", () => {
  expect(questionOf(part("x", "input-available", { input: { question: "Tea?", options: ["yes", 1, "no"] } }))).toEqual({
    question: "Tea?",
    options: ["yes", "no"],
  });
  for (const input of [undefined, null, "question", [], { question: 1 }, { question: "" }]) {
    expect(questionOf(part("x", "input-available", { input }))).toBeNull();
  }
  expect(questionOf(part("x", "input-available", { input: { question: "Tea?", options: "yes" } }))?.options).toEqual([]);
});
