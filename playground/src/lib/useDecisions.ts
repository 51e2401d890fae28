import type { UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useState } from "react";
import { lastCalls, type ToolPart } from "./calls";

type Socket = Pick<WebSocket, "addEventListener" | "removeEventListener">;
type Frame = { type: string; message?: UIMessage; messages?: UIMessage[] };

/**
 * Remembers what was decided on calls while their message still streams. The
 * hook builds such a message out of the stream, in which no decision is, so
 * with the next chunk or a replay it would show the question again.
 *
 * Gives the messages with the decisions, and a way to note one made here.
 */
export function useDecisions(socket: Socket, messages: UIMessage[]): [UIMessage[], (part: ToolPart) => void] {
  const [decided, setDecided] = useState<ReadonlyMap<string, ToolPart>>(new Map());
  const note = useCallback((part: ToolPart) => setDecided((all) => new Map(all).set(part.toolCallId, part)), []);

  useEffect(() => {
    const onMessage = (event: MessageEvent) => {
      if (typeof event.data !== "string" || !event.data.includes('"approval"')) return;
      const frame = JSON.parse(event.data) as Frame;
      if (frame.type === "cf_agent_message_updated") {
        lastCalls([frame.message!]).filter(isDecided).forEach(note);
      } else if (frame.type === "cf_agent_chat_messages") {
        // What the server has stored and asks about is not decided, whatever was noted here.
        const asked = lastCalls(frame.messages!).filter((part) => !isDecided(part));
        setDecided((all) => without(all, asked));
      }
    };
    // A decision may have been lost with the line.
    const onClose = () => setDecided(new Map());
    socket.addEventListener("message", onMessage);
    socket.addEventListener("close", onClose);
    return () => {
      socket.removeEventListener("message", onMessage);
      socket.removeEventListener("close", onClose);
    };
  }, [socket, note]);

  const shown = useMemo(() => withDecisions(messages, decided), [messages, decided]);
  return [shown, note];
}

/** The messages with the calls that ask as they were decided; the same objects where there is nothing to change. */
export function withDecisions(messages: UIMessage[], decided: ReadonlyMap<string, ToolPart>): UIMessage[] {
  const asks = (part: ToolPart) => part.state === "approval-requested" && decided.has(part.toolCallId);
  if (decided.size === 0 || !lastCalls(messages).some(asks)) return messages;
  const last = messages.at(-1)!;
  const parts = last.parts.map((part) => ("toolCallId" in part && asks(part) ? decided.get(part.toolCallId)! : part));
  return [...messages.slice(0, -1), { ...last, parts }];
}

function without(decided: ReadonlyMap<string, ToolPart>, parts: ToolPart[]): ReadonlyMap<string, ToolPart> {
  const ids = new Set(parts.map((part) => part.toolCallId));
  return new Map([...decided].filter(([id]) => !ids.has(id)));
}

function isDecided(part: ToolPart): boolean {
  return part.approval?.approved !== undefined;
}
