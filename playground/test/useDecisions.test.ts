import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import type { ToolPart } from "../src/lib/calls";
import { withDecisions } from "../src/lib/useDecisions";

function part(state: ToolPart["state"], more: object = {}): ToolPart {
  return { type: "tool-x", toolCallId: "c1", state, input: {}, approval: { id: "a1" }, ...more } as ToolPart;
}

function answer(...parts: ToolPart[]): UIMessage {
  return { id: "m", role: "assistant", parts: [{ type: "step-start" }, ...parts] };
}

const DENIED = part("output-denied", { approval: { id: "a1", approved: false, reason: "No." } });

test("a question that was decided is shown as decided", () => {
  const user: UIMessage = { id: "u", role: "user", parts: [] };
  const [first, last] = withDecisions([user, answer(part("approval-requested"))], new Map([["c1", DENIED]]));
  expect(first).toBe(user);
  expect(last).toEqual(answer(DENIED));
});

test.each([
  ["nothing was decided", part("approval-requested"), new Map()],
  ["another call was", part("approval-requested"), new Map([["c2", DENIED]])],
  ["the call knows more by now", part("output-available"), new Map([["c1", DENIED]])],
])("where %s the messages stay the same objects", (_, call, decided) => {
  const messages = [answer(call)];
  expect(withDecisions(messages, decided)).toBe(messages);
});
