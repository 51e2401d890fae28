import { isFileUIPart, isReasoningUIPart, isTextUIPart, isToolUIPart, type UIMessage } from "ai";

type Part = UIMessage["parts"][number];

/** Whether the page has something to show for a part: a step mark or an empty text has none. */
function shows(part: Part): boolean {
  if (isTextUIPart(part) || isReasoningUIPart(part)) return part.text !== "";
  return isToolUIPart(part) || isFileUIPart(part);
}

/** A message may be empty: an answer that failed or was stopped before its first word. */
export function hasContent(message: UIMessage): boolean {
  return message.parts.some(shows);
}
