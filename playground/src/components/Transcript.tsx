import type { UIMessage } from "ai";
import { hasContent } from "../lib/parts";
import { Message } from "./Message";

type Props = { messages: UIMessage[]; running: boolean; connected: boolean };

/** The messages, oldest first. While an answer grows, screen readers are told to wait for its end. */
export function Transcript({ messages, running, connected }: Props) {
  return (
    <div className="transcript" role="log" aria-label="Messages" aria-live="polite" aria-busy={running} data-testid="transcript">
      {messages.filter(hasContent).map((message) => (
        <Message
          key={message.id}
          message={message}
          last={message === messages.at(-1)}
          running={running && message === messages.at(-1)}
          connected={connected}
        />
      ))}
    </div>
  );
}
