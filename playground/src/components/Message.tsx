import { isToolUIPart, type UIMessage } from "ai";
import { memo } from "react";
import { areUndecided } from "../lib/calls";
import { MessagePart } from "./MessagePart";

type Props = {
  message: UIMessage;
  /** It is the last one. */
  last: boolean;
  /** A turn runs. */
  running: boolean;
  /** What the page shows is up to date. */
  connected: boolean;
};

/** One message. Memoised: a growing answer renders only itself. */
export const Message = memo(function Message({ message, last, running, connected }: Props) {
  const live = last && running;
  const undecided = areUndecided(message.parts.filter(isToolUIPart));
  const who = message.role === "user" ? "You" : "Assistant";
  return (
    <article
      className={`message ${message.role}`}
      aria-label={who}
      data-testid="message"
      data-role={message.role}
      data-message-id={message.id}
      data-live={live}
    >
      {message.parts.map((part, index) => (
        // Parts have no ids and are only ever added at the end.
        <MessagePart key={index} part={part} markdown={message.role !== "user"} live={live} situation={{ last, running: running || !connected, undecided }} />
      ))}
    </article>
  );
});
