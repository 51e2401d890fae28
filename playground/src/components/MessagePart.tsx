import { isFileUIPart, isReasoningUIPart, isTextUIPart, isToolUIPart, type UIMessage } from "ai";
import type { Situation } from "../lib/calls";
import { FilePart } from "./FilePart";
import { ReasoningPart } from "./ReasoningPart";
import { TextPart } from "./TextPart";
import { ToolCard } from "./ToolCard";

type Props = { part: UIMessage["parts"][number]; markdown: boolean; live: boolean; situation: Situation };

/** Chooses how a part shows; kinds that the page does not know, and step marks, show nothing. */
export function MessagePart({ part, markdown, live, situation }: Props) {
  if (isTextUIPart(part)) return <TextPart part={part} markdown={markdown} live={live} />;
  if (isReasoningUIPart(part)) return <ReasoningPart part={part} live={live} />;
  if (isToolUIPart(part)) return <ToolCard part={part} situation={situation} />;
  if (isFileUIPart(part)) return <FilePart part={part} />;
  return null;
}
