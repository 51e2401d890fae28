import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { fitHeight } from "../lib/fitHeight";
import { Icon } from "./Icon";

type Props = {
  busy: boolean;
  disabled: boolean;
  /** A call waits for somebody: a message leaves it without an answer. */
  waiting: boolean;
  onSend: (text: string) => void;
  onStop: () => void;
};

/** Where one writes: Enter sends, Shift+Enter makes a new line. */
export function Composer({ busy, disabled, waiting, onSend, onStop }: Props) {
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    // A phone would open its keyboard over the conversation.
    if (matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, []);
  useLayoutEffect(() => fitHeight(box.current!));

  const send = () => {
    if (!text.trim() || disabled) return;
    onSend(text.trim());
    setText("");
    box.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const composing = event.nativeEvent.isComposing; // Enter picks a suggestion of the input method
    if (event.key !== "Enter" || event.shiftKey || composing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={box}
        rows={1}
        aria-label="Message"
        placeholder={waiting ? "Write a message instead" : "Write a message"}
        data-testid="composer"
        value={text}
        disabled={disabled}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {busy && (
        <button type="button" className="round stop" title="Stop the answer" aria-label="Stop" data-testid="stop" onClick={onStop}>
          <Icon name="stop" />
        </button>
      )}
      <button className="round send" title="Send" aria-label="Send" data-testid="send" disabled={disabled || !text.trim()}>
        <Icon name="send" />
      </button>
    </form>
  );
}
