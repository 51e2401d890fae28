import type { Connection } from "../lib/connection";

const LABELS = {
  connecting: "Connecting…",
  connected: "Connected",
  reconnecting: "Reconnecting…",
  refused: "Refused",
} as const;

export function ConnectionStatus({ connection }: { connection: Connection }) {
  return (
    <output className="connection" data-testid="status" data-state={connection.state}>
      <span className="dot" aria-hidden="true" />
      {LABELS[connection.state]}
    </output>
  );
}
