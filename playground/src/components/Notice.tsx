import type { ReactNode } from "react";

type Props = { title: string; children: ReactNode; action?: string; onAction?: () => void };

/** A page of its own that says one thing, with at most one way on. */
export function Notice({ title, children, action, onAction }: Props) {
  return (
    <main className="notice" role="alert">
      <h1>{title}</h1>
      <p>{children}</p>
      {action && (
        <button type="button" className="button primary" onClick={onAction}>
          {action}
        </button>
      )}
    </main>
  );
}
