import type { UIMessage } from "ai";
import { Message } from "./Message";

/** The messages, oldest first. While an answer grows, screen readers are told to wait for its end. */
export function Transcript({ messages, busy }: { messages: UIMessage[]; busy: boolean }) {
  return (
    <div className="transcript" role="log" aria-label="Messages" aria-live="polite" aria-busy={busy} data-testid="transcript">
      {messages.map((message, index) => (
        <Message key={message.id} message={message} live={busy && index === messages.length - 1} />
      ))}
    </div>
  );
}
