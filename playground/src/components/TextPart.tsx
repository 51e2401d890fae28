import type { TextUIPart } from "ai";
import { Markdown } from "./Markdown";

type Props = { part: TextUIPart; markdown: boolean; live: boolean };

/** A person's text shows as typed, the model's with its Markdown. */
export function TextPart({ part, markdown, live }: Props) {
  if (!part.text) return null;
  // A stopped answer keeps the state "streaming" for ever: only a live one grows.
  return (
    <div className={live && part.state === "streaming" ? "text growing" : "text"} data-testid="text">
      {markdown ? <Markdown text={part.text} /> : <p className="as-typed">{part.text}</p>}
    </div>
  );
}
