import type { ReasoningUIPart } from "ai";

/** What the model thought before it answered, folded away. */
export function ReasoningPart({ part, live }: { part: ReasoningUIPart; live: boolean }) {
  if (!part.text) return null;
  return (
    <details className="reasoning" data-testid="reasoning">
      <summary>{live && part.state === "streaming" ? "Thinking…" : "Reasoning"}</summary>
      <p className="as-typed">{part.text}</p>
    </details>
  );
}
