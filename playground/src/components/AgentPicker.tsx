import type { AgentClass } from "../lib/catalog";

type Props = { agents: AgentClass[]; path: string; onPick: (path: string) => void };

/** Chooses the agent class; with one class it only names it. */
export function AgentPicker({ agents, path, onPick }: Props) {
  if (agents.length === 1) {
    return (
      <span className="agent-name" data-testid="agent">
        {agents[0]!.class}
      </span>
    );
  }
  return (
    <select
      className="agent-picker"
      aria-label="Agent"
      data-testid="agent"
      value={path}
      onChange={(event) => onPick(event.target.value)}
    >
      {agents.map((agent) => (
        <option key={agent.path} value={agent.path}>
          {agent.class}
        </option>
      ))}
    </select>
  );
}
