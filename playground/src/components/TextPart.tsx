import type { TextUIPart } from "ai";
import { Markdown } from "./Markdown";

/** A person's text shows as typed, the model's with its Markdown. */
export function TextPart({ part, markdown }: { part: TextUIPart; markdown: boolean }) {
  if (!part.text) return null;
  return (
    <div className={part.state === "streaming" ? "text growing" : "text"} data-testid="text">
      {markdown ? <Markdown text={part.text} /> : <p className="as-typed">{part.text}</p>}
    </div>
  );
}
