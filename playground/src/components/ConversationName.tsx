import { useRef, useState } from "react";
import { MAX_NAME } from "../lib/names";

type Props = { name: string; onRename: (name: string) => void };

/** The name of the conversation. Typing another one and pressing Enter opens that conversation. */
export function ConversationName({ name, onRename }: Props) {
  const [draft, setDraft] = useState(name);
  const input = useRef<HTMLInputElement>(null);

  const leave = () => {
    const wanted = draft.trim();
    if (wanted && wanted !== name) onRename(wanted);
    else setDraft(name);
  };
  return (
    <form
      className="conversation-name"
      onSubmit={(event) => {
        event.preventDefault();
        input.current?.blur();
      }}
    >
      <input
        ref={input}
        aria-label="Conversation name"
        title="Type another name to open that conversation"
        data-testid="conversation-name"
        value={draft}
        maxLength={MAX_NAME}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && setDraft(name)}
        onBlur={leave}
      />
    </form>
  );
}
