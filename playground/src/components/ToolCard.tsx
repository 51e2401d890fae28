import { type DynamicToolUIPart, getToolName, type ToolUIPart } from "ai";
import { Icon } from "./Icon";
import { Value } from "./Value";

type ToolPart = ToolUIPart | DynamicToolUIPart;

const STATES: Record<ToolPart["state"], { label: string; tone: "busy" | "waiting" | "good" | "bad" }> = {
  "input-streaming": { label: "Preparing", tone: "busy" },
  "input-available": { label: "Running", tone: "busy" },
  "approval-requested": { label: "Waiting for approval", tone: "waiting" },
  "approval-responded": { label: "Answered", tone: "busy" },
  "output-available": { label: "Done", tone: "good" },
  "output-error": { label: "Failed", tone: "bad" },
  "output-denied": { label: "Denied", tone: "bad" },
};

/** One tool call: its name, how far it is, what went in and what came out. */
export function ToolCard({ part }: { part: ToolPart }) {
  const name = getToolName(part);
  const { label, tone } = STATES[part.state];
  return (
    <section className="tool-card" aria-label={`Tool ${name}`} data-testid="tool-card" data-tool={name} data-state={part.state}>
      <header>
        <Icon name="tool" />
        <span className="tool-name">{name}</span>
        <span className={`pill ${tone}`}>{label}</span>
      </header>
      {part.input !== undefined && <Value label="Input" value={part.input} />}
      {part.state === "output-available" && <Value label="Output" value={part.output} />}
      {part.state === "output-error" && <Value label="Error" value={part.errorText} />}
    </section>
  );
}
