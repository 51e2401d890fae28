import type { UIMessage } from "ai";
import { hasContent } from "../lib/parts";
import { Message } from "./Message";

/** The messages, oldest first. While an answer grows, screen readers are told to wait for its end. */
export function Transcript({ messages, busy }: { messages: UIMessage[]; busy: boolean }) {
  return (
    <div className="transcript" role="log" aria-label="Messages" aria-live="polite" aria-busy={busy} data-testid="transcript">
      {messages.filter(hasContent).map((message) => (
        <Message key={message.id} message={message} live={busy && message === messages.at(-1)} />
      ))}
    </div>
  );
}
