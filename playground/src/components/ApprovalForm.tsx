import { type FormEvent, useId, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useAnswers } from "../lib/answers";
import type { ToolPart } from "../lib/calls";
import { readObject } from "../lib/json";
import { ArgumentsEditor } from "./ArgumentsEditor";
import { Value } from "./Value";

type Props = { part: ToolPart; onAnswered: () => void };

const LOST = "The connection was lost before the server answered.";

/** What a person must see, even if it is added below the edge of the window. */
const intoView = (element: HTMLElement | null) => element?.scrollIntoView({ block: "nearest" });

/** Asks whether a call may run: its arguments, which can be changed, and a yes or a no with or without a reason. */
export function ApprovalForm({ part, onAnswered }: Props) {
  const { decide } = useAnswers();
  const [draft, setDraft] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const [reason, setReason] = useState("");
  const [sent, setSent] = useState(false);
  const editButton = useRef<HTMLButtonElement>(null);
  const reasonId = useId();
  const problemId = useId();

  const say = async (approved: boolean, input?: Record<string, unknown>) => {
    setProblem("");
    setSent(true);
    onAnswered();
    const outcome = await decide(part, { approved, input, reason: (!approved && reason.trim()) || undefined });
    if (outcome === "taken") return;
    setSent(false);
    setProblem(outcome === "lost" ? LOST : outcome.refused);
  };
  const approve = () => {
    if (draft === null) return void say(true);
    const read = readObject(draft);
    if (!read.value) return setProblem(read.problem);
    void say(true, read.value);
  };
  const discard = () => {
    flushSync(() => {
      setDraft(null);
      setProblem("");
    });
    editButton.current?.focus();
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    void say(false); // Enter in the reason: whoever gives one means no
  };
  return (
    <form className="approval" data-testid="approval" onSubmit={onSubmit}>
      {draft === null ? (
        <div className="editable">
          <Value label="Input" value={part.input} />
          <button
            ref={editButton}
            type="button"
            className="text-button"
            data-testid="edit-input"
            disabled={sent}
            onClick={() => setDraft(JSON.stringify(part.input, null, 2))}
          >
            Edit
          </button>
        </div>
      ) : (
        <ArgumentsEditor
          value={draft}
          problemId={problem ? problemId : undefined}
          disabled={sent}
          onChange={setDraft}
          onCancel={discard}
        />
      )}
      <div className="decision">
        <button type="button" className="button primary" data-testid="approve" disabled={sent} onClick={approve}>
          {draft === null ? "Approve" : "Approve with changes"}
        </button>
        <button className="button" data-testid="deny" disabled={sent}>
          Deny
        </button>
        <label className="hidden" htmlFor={reasonId}>
          Reason for denying
        </label>
        <input
          id={reasonId}
          className="field"
          placeholder="Reason, if you deny (optional)"
          data-testid="reason"
          autoComplete="off"
          value={reason}
          disabled={sent}
          onChange={(event) => setReason(event.target.value)}
        />
      </div>
      {sent && <output className="note">Sending…</output>}
      {problem && (
        <p ref={intoView} id={problemId} className="note bad" role="alert" data-testid="problem">
          {problem}
        </p>
      )}
    </form>
  );
}
