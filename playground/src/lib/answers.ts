import type { UIMessage } from "ai";
import { createContext, useContext } from "react";
import { lastCalls, type ToolPart } from "./calls";

/** What a person says to a call that asks whether it may run. */
export type Decision = { approved: boolean; reason?: string; input?: Record<string, unknown> };

/** What became of a decision. One that is lost or refused (this is why) leaves the call as it was. */
export type Outcome = "taken" | "lost" | { refused: string };

/** How the cards of a conversation answer tool calls. */
export type Answers = {
  decide: (part: ToolPart, decision: Decision) => Promise<Outcome>;
  answer: (part: ToolPart, output: unknown) => void;
  /** The call has no result, for this reason; the conversation goes on with that. */
  decline: (part: ToolPart, reason: string) => void;
};

type Socket = Pick<WebSocket, "addEventListener" | "removeEventListener" | "send">;

/*
 * The two frames that the published hook does not write as this page needs them. Its `addToolApprovalResponse` sends
 * neither the reason nor other arguments, and its `addToolOutput` never lets the conversation go on after an error. The
 * server documents these fields, and what comes back is the same as for the hook's own frames.
 */

export function sendDecision(socket: Socket, call: string, { approved, reason, input }: Decision): void {
  socket.send(JSON.stringify({ type: "cf_agent_tool_approval", toolCallId: call, approved, reason, input, autoContinue: true }));
}

export function sendFailure(socket: Socket, call: string, tool: string, errorText: string): void {
  const frame = { toolCallId: call, toolName: tool, state: "output-error", errorText, autoContinue: true };
  socket.send(JSON.stringify({ type: "cf_agent_tool_result", ...frame }));
}

/** Waits for what the server makes of a decision that was just sent: it shows the message again in any case. */
export function outcomeOf(socket: Socket, call: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const end = (outcome: Outcome) => {
      socket.removeEventListener("message", onMessage);
      socket.removeEventListener("close", onClose);
      resolve(outcome);
    };
    const onClose = () => end("lost");
    const onMessage = (event: MessageEvent) => {
      if (typeof event.data !== "string" || !event.data.includes("cf_agent_message_updated")) return;
      const frame = JSON.parse(event.data) as { type: string; message: UIMessage };
      if (frame.type !== "cf_agent_message_updated") return;
      const part = lastCalls([frame.message]).find((each) => each.toolCallId === call);
      if (!part) return;
      // Only who sent other arguments that cannot be used is told so, in a field that is stored nowhere.
      const why = (part.approval as { error?: string } | undefined)?.error;
      if (part.state !== "approval-requested") end("taken");
      else if (why !== undefined) end({ refused: why });
    };
    socket.addEventListener("message", onMessage);
    socket.addEventListener("close", onClose);
  });
}

const Context = createContext<Answers | null>(null);

export const AnswersProvider = Context.Provider;

export function useAnswers(): Answers {
  return useContext(Context)!;
}
