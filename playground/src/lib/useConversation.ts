import { useAgentChat } from "@cloudflare/think/react";
import { useAgent } from "agents/react";
import { generateId } from "ai";
import { useState } from "react";
import { ANSWERED, OFFERED } from "./browserTools";
import { lastCalls, waitingFor } from "./calls";
import { describeConnection } from "./connection";
import { loadHistory } from "./loadHistory";
import type { Place } from "./place";
import { runHere, useAnswering, useApprovedCalls } from "./useAnswering";
import { useDecisions } from "./useDecisions";
import { useTurns } from "./useTurns";

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
  const [sent, setSent] = useState<{ id: string; text: string; after: number } | null>(null);
  const [turnError, setTurnError] = useState<string | null>(null);
  const chat = useAgentChat({
    agent,
    getInitialMessages: loadHistory,
    tools: OFFERED,
    experimental_automaticToolResolution: true, // without it the hook does not run their `execute`
    onToolCall: ({ toolCall: { toolCallId, toolName, input }, addToolOutput }) => {
      // The hook asks for every open call: also for those that it runs itself, and those that a person answers.
      if (!Object.hasOwn(ANSWERED, toolName)) return;
      const call = { id: toolCallId, tool: toolName, input };
      return runHere(agent, call, (output) => addToolOutput({ toolCallId, output }));
    },
    // Also reports turns of other tabs, and the last one's failure after a reload.
    onTurnEnd: (turn) => {
      if (turn.outcome === "error") setTurnError(turn.error ?? "The turn failed.");
      else forgetError();
    },
  });
  const [messages, noteDecision] = useDecisions(agent, chat.messages);
  const answers = useAnswering(chat, agent, noteDecision);
  const { running: runningTurn, skipped } = useTurns(agent);

  const connection = describeConnection(agent.identified, wasOpen, agent.connectionError);
  const submitted = chat.status === "submitted";
  const goingOn = chat.isToolContinuation; // the hook is "submitted" then too, for as long as other calls are open
  const running = runningTurn !== null || chat.status === "streaming" || chat.isRecovering || (submitted && !goingOn);
  const waitsFor = running ? "" : waitingFor(lastCalls(messages));
  useApprovedCalls(chat, agent, running);

  function forgetError() {
    setTurnError(null);
    chat.clearError();
  }
  function forget() {
    setSent(null);
    forgetError();
  }

  const send = (text: string) => {
    forget();
    const id = generateId();
    setSent({ id, text, after: skipped });
    void chat.sendMessage({ id, role: "user", parts: [{ type: "text", text }] });
  };
  const retry = () => {
    forget();
    void chat.regenerate();
  };
  const stop = () => {
    void chat.stop();
    const idle = !submitted && chat.status !== "streaming";
    if (idle && runningTurn) agent.send(JSON.stringify({ type: "cf_agent_chat_request_cancel", id: runningTurn }));
  };
  const clear = () => {
    forget();
    chat.clearHistory();
  };

  // One whose turn another message took is skipped too, and stays.
  const isGone = sent && skipped > sent.after && messages.every(({ id }) => id !== sent.id);
  const ownError = chat.error && chat.error.message !== LINE_LOST ? chat.error.message : null;
  return {
    messages,
    answers,
    connection,
    error: ownError ?? turnError,
    /** The last message that was sent here, when the agent did not take it. */
    notTaken: isGone && messages.length > 0 ? sent.text : null,
    /** An answer was asked for, and has not begun. */
    submitted: submitted && !goingOn,
    recovering: chat.isRecovering,
    /** A turn runs. */
    running,
    /** Whom the conversation waits for, as a sentence; empty when it does not. */
    waitsFor,
    /** Something goes on that can be stopped. */
    busy: running || (goingOn && !waitsFor),
    send,
    retry,
    stop,
    clear,
    /** Say no more of what went wrong. */
    forget,
  };
}

export type Conversation = ReturnType<typeof useConversation>;
