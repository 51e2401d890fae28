import { useState } from "react";

/** A value with more lines or characters than these starts folded. */
const FOLD = { lines: 12, characters: 900 };
const ONE_LINE = 72;

/** A labelled JSON value or text, on one line if it fits, folded if it is big. */
export function Value({ label, value }: { label: string; value: unknown }) {
  const text = typeof value === "string" ? value : toJson(value);
  const lines = text.split("\n").length;
  const big = lines > FOLD.lines || text.length > FOLD.characters;
  const [open, setOpen] = useState(false);
  return (
    <div className="value" data-testid={`tool-${label.toLowerCase()}`}>
      <span className="value-label">{label}</span>
      {big ? (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{lines > 1 ? `${lines} lines` : `${text.length} characters`}</summary>
          {open && <Code text={text} />}
        </details>
      ) : (
        <Code text={text} />
      )}
    </div>
  );
}

function Code({ text }: { text: string }) {
  return (
    <pre>
      <code>{text}</code>
    </pre>
  );
}

function toJson(value: unknown): string {
  const compact = JSON.stringify(value, null, 1)?.replaceAll(/\n\s*/g, " ") ?? "";
  return compact.length <= ONE_LINE ? compact : JSON.stringify(value, null, 2);
}
