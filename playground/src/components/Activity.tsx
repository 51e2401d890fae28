import type { Conversation } from "../lib/useConversation";
import { Icon } from "./Icon";

/** Says what the server is doing for this conversation, whichever tab asked for it, or whom it waits for. */
export function Activity({ conversation }: { conversation: Conversation }) {
  const text = describe(conversation);
  const waits = text === conversation.waitsFor;
  return (
    // The page answers some calls itself, in a blink: that is not worth a word.
    <output className={waits ? "activity late" : "activity"} data-testid="activity">
      {text && (
        <>
          {waits ? <Icon name="pause" /> : <Pulse />}
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
