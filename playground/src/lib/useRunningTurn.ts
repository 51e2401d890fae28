import { useEffect, useState } from "react";

type Socket = Pick<WebSocket, "addEventListener" | "removeEventListener">;
type ResponseFrame = { type: string; id: string; done: boolean; error?: boolean };

/**
 * The request id of the turn whose chunks pass over the socket, whichever tab
 * asked for it. The chat hook stops its own turns only; with the id this tab
 * can stop another's. A lost socket says nothing any more.
 */
export function useRunningTurn(socket: Socket): string | null {
  const [running, setRunning] = useState<string | null>(null);
  useEffect(() => {
    const onMessage = (event: MessageEvent) => {
      if (typeof event.data !== "string" || !event.data.includes("cf_agent_use_chat_response")) return;
      const frame = JSON.parse(event.data) as ResponseFrame;
      if (frame.type !== "cf_agent_use_chat_response") return;
      // A turn that was skipped ends beside the one that runs.
      if (frame.done || frame.error) setRunning((current) => (current === frame.id ? null : current));
      else setRunning(frame.id);
    };
    const onClose = () => setRunning(null);
    socket.addEventListener("message", onMessage);
    socket.addEventListener("close", onClose);
    return () => {
      socket.removeEventListener("message", onMessage);
      socket.removeEventListener("close", onClose);
    };
  }, [socket]);
  return running;
}
