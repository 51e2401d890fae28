import { useState } from "react";
import type { Conversation } from "../lib/useConversation";
import { Activity } from "./Activity";
import { ConfirmDialog } from "./ConfirmDialog";

/** The line above the composer: what the server is doing, and clearing the conversation. */
export function Toolbar({ conversation }: { conversation: Conversation }) {
  const [asking, setAsking] = useState(false);
  return (
    <div className="toolbar">
      <Activity conversation={conversation} />
      {conversation.messages.length > 0 && (
        <button
          type="button"
          className="text-button"
          data-testid="clear"
          disabled={conversation.connection.state !== "connected"}
          onClick={() => setAsking(true)}
        >
          Clear conversation
        </button>
      )}
      {asking && (
        <ConfirmDialog
          title="Clear this conversation?"
          text="Its messages are deleted for everyone who has it open. This cannot be undone."
          confirm="Clear"
          onConfirm={conversation.clear}
          onClose={() => setAsking(false)}
        />
      )}
    </div>
  );
}
