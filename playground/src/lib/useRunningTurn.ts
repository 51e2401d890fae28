import { type RefObject, useEffect, useRef } from "react";

type Socket = Pick<WebSocket, "addEventListener" | "removeEventListener">;
type ResponseFrame = { type: string; id: string; done: boolean; error?: boolean };

/**
 * The request id of the turn whose chunks pass over the socket, whichever tab
 * asked for it. The chat hook stops its own turns only; with the id this tab
 * can stop another's.
 */
export function useRunningTurn(socket: Socket): RefObject<string | null> {
  const running = useRef<string | null>(null);
  useEffect(() => {
    const onMessage = (event: MessageEvent) => {
      if (typeof event.data !== "string" || !event.data.includes("cf_agent_use_chat_response")) return;
      const frame = JSON.parse(event.data) as ResponseFrame;
      if (frame.type === "cf_agent_use_chat_response") running.current = frame.done || frame.error ? null : frame.id;
    };
    socket.addEventListener("message", onMessage);
    return () => socket.removeEventListener("message", onMessage);
  }, [socket]);
  return running;
}
