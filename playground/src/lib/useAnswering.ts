import type { useAgentChat } from "@cloudflare/think/react";
import { getToolName } from "ai";
import { useEffect, useMemo, useRef } from "react";
import { type Answers, outcomeOf, sendDecision, sendFailure } from "./answers";
import { ANSWERED } from "./browserTools";
import { lastCalls, type ToolPart } from "./calls";

type Chat = ReturnType<typeof useAgentChat>;
type Socket = Parameters<typeof sendDecision>[0];

/** The same object for the life of a conversation: a card that was drawn once need not be drawn again for it. */
export function useAnswering(chat: Chat, socket: Socket, note: (part: ToolPart) => void): Answers {
  const latest = useRef(chat);
  useEffect(() => {
    latest.current = chat;
  });
  return useMemo(
    () => ({
      async decide(part, decision) {
        if (decision.reason || decision.input || !part.approval) {
          sendDecision(socket, part.toolCallId, decision);
          return outcomeOf(socket, part.toolCallId);
        }
        const { id } = part.approval;
        const { approved } = decision;
        note({ ...part, state: "approval-responded", approval: { id, approved } } as ToolPart);
        await latest.current.addToolApprovalResponse({ id, approved });
        return "taken";
      },
      answer(part, output) {
        latest.current.addToolOutput({ toolCallId: part.toolCallId, toolName: getToolName(part), output });
      },
      decline: (part, reason) => sendFailure(socket, part.toolCallId, getToolName(part), reason),
    }),
    [socket, note],
  );
}

/** Runs a tool that the server declares and this page answers, and says how it went. */
export async function runHere(socket: Socket, call: { id: string; tool: string; input: unknown }, give: (output: unknown) => void) {
  try {
    give(await ANSWERED[call.tool]!(call.input));
  } catch (error) {
    sendFailure(socket, call.id, call.tool, error instanceof Error ? error.message : String(error));
  }
}

/** Runs the calls that a person has approved: the hook hands out only those that ask nobody. */
export function useApprovedCalls(chat: Chat, socket: Socket, running: boolean): void {
  const done = useRef(new Set<string>());
  const { messages, addToolOutput } = chat;
  useEffect(() => {
    if (running) return;
    for (const part of lastCalls(messages)) {
      const approved = part.state === "approval-responded" && part.approval.approved;
      const { toolCallId, input } = part;
      const toolName = getToolName(part);
      if (!approved || done.current.has(toolCallId) || !Object.hasOwn(ANSWERED, toolName)) continue;
      done.current.add(toolCallId);
      const call = { id: toolCallId, tool: toolName, input };
      void runHere(socket, call, (output) => addToolOutput({ toolCallId, toolName, output }));
    }
  }, [messages, addToolOutput, socket, running]);
}
