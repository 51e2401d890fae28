import { useEffect, useState } from "react";

type Socket = Pick<WebSocket, "addEventListener" | "removeEventListener">;
type ResponseFrame = { type: string; id: string; done: boolean; error?: boolean; outcome?: string };

/**
 * What passes over the socket of turns, whichever tab asked for them: the
 * request id of the one that runs, and how many requests of this tab were
 * skipped so far.
 *
 * The chat hook stops its own turns only, and tells of a skipped one when the
 * answer that runs is over. A lost socket says nothing any more.
 */
export function useTurns(socket: Socket): { running: string | null; skipped: number } {
  const [running, setRunning] = useState<string | null>(null);
  const [skipped, setSkipped] = useState(0);
  useEffect(() => {
    const onMessage = (event: MessageEvent) => {
      if (typeof event.data !== "string" || !event.data.includes("cf_agent_use_chat_response")) return;
      const frame = JSON.parse(event.data) as ResponseFrame;
      if (frame.type !== "cf_agent_use_chat_response") return;
      if (frame.outcome === "skipped") setSkipped((count) => count + 1);
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
  return { running, skipped };
}
