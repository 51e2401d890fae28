import { useAgentChat } from "@cloudflare/think/react";
import { useAgent } from "agents/react";
import { useState } from "react";
import { describeConnection } from "./connection";
import { loadHistory } from "./loadHistory";
import type { Place } from "./place";
import { useRunningTurn } from "./useRunningTurn";

/** What the chat hook reports when it loses its socket in mid-stream; it resumes by itself afterwards. */
const LINE_LOST = "WebSocket closed mid-stream";

/** One conversation on the published hooks, reduced to what the page shows and does. */
export function useConversation({ agent: path, name }: Place) {
  const [wasOpen, setWasOpen] = useState(false);
  const agent = useAgent({
    agent: path,
    name: encodeURIComponent(name), // the hook puts the name into the URL as it is
    host: location.host,
    protocol: location.protocol === "https:" ? "wss" : "ws",
    minReconnectionDelay: 500,
    maxReconnectionDelay: 4000,
    onOpen: () => setWasOpen(true),
  });
  const [turnError, setTurnError] = useState<string | null>(null);
  const chat = useAgentChat({
    agent,
    getInitialMessages: loadHistory,
    // Also reports turns of other tabs, and the last one's failure after a reload.
    onTurnEnd: (turn) => {
      if (turn.outcome === "error") setTurnError(turn.error ?? "The turn failed.");
      else forgetError();
    },
  });
  const running = useRunningTurn(agent);

  const connection = describeConnection(agent.identified, wasOpen, agent.connectionError);

  function forgetError() {
    setTurnError(null);
    chat.clearError();
  }

  const send = (text: string) => {
    forgetError();
    void chat.sendMessage({ text });
  };
  const retry = () => {
    forgetError();
    void chat.regenerate();
  };
  const stop = () => {
    void chat.stop();
    const idle = chat.status !== "submitted" && chat.status !== "streaming";
    if (idle && running.current) agent.send(JSON.stringify({ type: "cf_agent_chat_request_cancel", id: running.current }));
  };
  const clear = () => {
    forgetError();
    chat.clearHistory();
  };

  const waiting = chat.status === "submitted";
  const ownError = chat.error && chat.error.message !== LINE_LOST ? chat.error.message : null;
  return {
    messages: chat.messages,
    connection,
    error: ownError ?? turnError,
    waiting,
    recovering: chat.isRecovering,
    busy: waiting || chat.isStreaming || chat.isRecovering,
    send,
    retry,
    stop,
    clear,
    forgetError,
  };
}

export type Conversation = ReturnType<typeof useConversation>;
