import type { Conversation } from "../lib/useConversation";

/** Says what the server is doing for this conversation, whichever tab asked for it. */
export function Activity({ conversation }: { conversation: Conversation }) {
  const text = describe(conversation);
  return (
    <output className="activity" data-testid="activity">
      {text && (
        <>
          <span className="pulse" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          {text}
        </>
      )}
    </output>
  );
}

function describe({ connection, recovering, waiting, busy }: Conversation): string {
  if (connection.state === "reconnecting") return "Connection lost, connecting again…";
  if (recovering) return "The server is picking up an interrupted answer…";
  if (waiting) return "Waiting for the answer…";
  return busy ? "The server is answering…" : "";
}
