import { type DynamicToolUIPart, getToolName, isToolUIPart, type ToolUIPart, type UIMessage } from "ai";
import { runsHere } from "./browserTools";
import { EXPIRED, INTERRUPTED, NOT_RUN } from "./serverTexts";

export type ToolPart = ToolUIPart | DynamicToolUIPart;

/** What the call's message is: the part alone does not tell whether its tool runs or somebody is waited for. */
export type Situation = {
  /** It is the last one: only its calls can still be answered. */
  last: boolean;
  /** A turn runs, or may run without this page knowing it. */
  running: boolean;
  /** Somebody has yet to say something to one of its calls: none that was approved has to do anything before. */
  undecided: boolean;
};

export type CallView = {
  label: string;
  tone: "busy" | "waiting" | "good" | "bad";
  /** What the call waits for. */
  waits?: "approval" | "answer" | "browser";
  /** Said instead of the error that the server wrote. */
  note?: string;
};

const APPROVAL: CallView = { label: "Needs approval", tone: "waiting", waits: "approval" };
const ANSWER: CallView = { label: "Waiting for an answer", tone: "waiting", waits: "answer" };
const BROWSER: CallView = { label: "Waiting for this browser", tone: "waiting", waits: "browser" };
const UNANSWERED: CallView = {
  label: "Not answered",
  tone: "waiting",
  note: "The conversation went on without an answer.",
};

/** The error of a call whose question a person would not answer, as this page gives it. */
export const DECLINED = "The user declined to answer.";

/** How far one tool call is, and whether it waits for somebody. */
export function viewOf(part: ToolPart, { last, running, undecided }: Situation): CallView {
  switch (part.state) {
    case "input-streaming":
      return { label: "Preparing", tone: "busy" };
    case "input-available":
      if (!last) return UNANSWERED;
      if (runsHere(getToolName(part))) return BROWSER;
      return running ? { label: "Running", tone: "busy" } : ANSWER;
    case "approval-requested":
      return last ? APPROVAL : UNANSWERED;
    case "approval-responded":
      // The hook shows a refusal like this until the server has confirmed it.
      if (part.approval.approved === false) return { label: "Denied", tone: "bad" };
      if (last && runsHere(getToolName(part))) return BROWSER;
      if (running) return { label: "Approved, running", tone: "busy" };
      return undecided ? { label: "Approved", tone: "good" } : { ...ANSWER, label: "Approved" };
    case "output-available":
      return part.preliminary ? { label: "Running", tone: "busy" } : { label: "Done", tone: "good" };
    case "output-error":
      return viewOfError(part);
    case "output-denied":
      return { label: part.approval?.reason === EXPIRED ? "Expired" : "Denied", tone: "bad" };
  }
}

function viewOfError(part: ToolPart): CallView {
  if (part.errorText === NOT_RUN) return { label: "Not run", tone: "waiting", note: "Approved, but the conversation went on before it ran." };
  if (part.errorText === DECLINED) return { label: "Declined", tone: "bad" };
  if (part.errorText !== INTERRUPTED) return { label: "Failed", tone: "bad" };
  const undecided = part.approval !== undefined && part.approval.approved === undefined;
  return undecided || runsHere(getToolName(part)) || isQuestion(part) ? UNANSWERED : { label: "Interrupted", tone: "bad" };
}

/** Whether a call puts a question to a person, to be read as text. */
export function isQuestion(part: ToolPart): boolean {
  return questionOf(part) !== null;
}

/** The question of a call, and the answers that it suggests: `{question, options?}`. */
export function questionOf(part: ToolPart): { question: string; options: string[] } | null {
  const input: { question?: unknown; options?: unknown } = Object(part.input);
  if (typeof input.question !== "string" || !input.question) return null;
  const options: unknown[] = Array.isArray(input.options) ? input.options : [];
  return { question: input.question, options: options.filter((option) => typeof option === "string") };
}

/** The tool calls of the last message, if it is an answer. */
export function lastCalls(messages: UIMessage[]): ToolPart[] {
  const last = messages.at(-1);
  return last?.role === "assistant" ? last.parts.filter(isToolUIPart) : [];
}

/** Whether a person or a page has yet to say anything to one of these calls. */
export function areUndecided(calls: ToolPart[]): boolean {
  return calls.some(({ state }) => state === "approval-requested" || state === "input-available");
}

/** Says what the conversation waits for; empty when it waits for nothing. */
export function waitingFor(calls: ToolPart[]): string {
  const sentences = { approval: "your approval of", answer: "your answer to", browser: "this browser to run" };
  const situation = { last: true, running: false, undecided: areUndecided(calls) };
  const found = (Object.keys(sentences) as (keyof typeof sentences)[]).flatMap((kind) => {
    const names = calls.filter((part) => viewOf(part, situation).waits === kind).map(getToolName);
    return names.length > 0 ? [`${sentences[kind]} ${names.join(", ")}`] : [];
  });
  return found.length > 0 ? `Waiting for ${found.join(", and ")}` : "";
}
