import { getToolName } from "ai";
import { useRef } from "react";
import { questionOf, type Situation, type ToolPart, viewOf } from "../lib/calls";
import { AnswerForm } from "./AnswerForm";
import { ApprovalForm } from "./ApprovalForm";
import { Icon } from "./Icon";
import { Value } from "./Value";

type Props = { part: ToolPart; situation: Situation };

/** One tool call: its name, how far it is, what went in and what came out, and what can be said to it. */
export function ToolCard({ part, situation }: Props) {
  const name = getToolName(part);
  const { label, tone, waits, note } = viewOf(part, situation);
  const card = useRef<HTMLElement>(null);
  const question = questionOf(part);
  // The control that had the focus goes away; the reader stays at the card.
  const onAnswered = () => card.current?.focus({ preventScroll: true });
  return (
    <section
      ref={card}
      tabIndex={-1}
      className={waits ? "tool-card waiting" : "tool-card"}
      aria-label={`Tool ${name}: ${label}`}
      data-testid="tool-card"
      data-tool={name}
      data-state={part.state}
    >
      <header>
        <Icon name={question ? "question" : "tool"} />
        <span className="tool-name">{name}</span>
        <span className={`pill ${tone}`} data-testid="tool-status">
          {label}
        </span>
      </header>
      {question && (
        <p className="question as-typed" data-testid="question">
          {question.question}
        </p>
      )}
      {/* The form for an approval shows the input itself: it can be changed there. */}
      {part.input !== undefined && !question && waits !== "approval" && <Value label="Input" value={part.input} />}
      {waits === "approval" && <ApprovalForm key={part.toolCallId} part={part} onAnswered={onAnswered} />}
      {waits === "answer" && <AnswerForm part={part} options={question?.options ?? []} onAnswered={onAnswered} />}
      {part.state === "output-available" && <Value label={question ? "Answer" : "Output"} value={part.output} />}
      {note && <p className="remark">{note}</p>}
      {part.state === "output-error" && !note && <Value label="Error" value={part.errorText} />}
      {part.approval?.reason && <Value label="Reason" value={part.approval.reason} />}
    </section>
  );
}
