import type { ReasoningUIPart } from "ai";

/** What the model thought before it answered, folded away. */
export function ReasoningPart({ part }: { part: ReasoningUIPart }) {
  if (!part.text) return null;
  return (
    <details className="reasoning" data-testid="reasoning">
      <summary>{part.state === "streaming" ? "Thinking…" : "Reasoning"}</summary>
      <p className="as-typed">{part.text}</p>
    </details>
  );
}
