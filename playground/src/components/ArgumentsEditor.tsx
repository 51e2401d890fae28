import { useEffect, useLayoutEffect, useRef } from "react";
import { fitHeight } from "../lib/fitHeight";

type Props = {
  value: string;
  /** Id of the element that says what is wrong with it. */
  problemId: string | undefined;
  disabled: boolean;
  onChange: (text: string) => void;
  onCancel: () => void;
};

/** The arguments of a call as JSON to be changed. Escape gives up the changes. */
export function ArgumentsEditor({ value, problemId, disabled, onChange, onCancel }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus(), []);
  useLayoutEffect(() => fitHeight(area.current!));
  return (
    <div className="editor">
      <div className="editor-head">
        <span className="value-label">Input, as JSON</span>
        <button type="button" className="text-button" data-testid="edit-cancel" disabled={disabled} onClick={onCancel}>
          Discard changes
        </button>
      </div>
      <textarea
        ref={area}
        className="field"
        aria-label="Input, as JSON"
        aria-invalid={problemId !== undefined}
        aria-describedby={problemId}
        data-testid="input-editor"
        rows={1}
        spellCheck={false}
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onCancel()}
      />
    </div>
  );
}
