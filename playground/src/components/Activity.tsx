import type { Conversation } from "../lib/useConversation";
import { Icon } from "./Icon";

/** Says what the server is doing for this conversation, whichever tab asked for it, or whom it waits for. */
export function Activity({ conversation }: { conversation: Conversation }) {
  const text = describe(conversation);
  return (
    <output className="activity" data-testid="activity">
      {text && (
        <>
          {text === conversation.waitsFor ? <Icon name="pause" /> : <Pulse />}
          {text}
        </>
      )}
    </output>
  );
}

function Pulse() {
  return (
    <span className="pulse" aria-hidden="true">
      <i />
      <i />
      <i />
    </span>
  );
}

function describe({ connection, recovering, submitted, busy, waitsFor }: Conversation): string {
  if (connection.state === "reconnecting") return "Connection lost, connecting again…";
  if (recovering) return "The server is picking up an interrupted answer…";
  if (submitted) return "Waiting for the answer…";
  return busy ? "The server is answering…" : waitsFor;
}
