const PATHS = {
  plus: "M12 5v14M5 12h14",
  external: "M14 5h5v5M19 5l-8 8M10 6H7a2 2 0 0 0-2 2v9a2 2 0 0 0 2 2h9a2 2 0 0 0 2-2v-3",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8z",
  down: "M12 5v14M6 13l6 6 6-6",
  tool: "M5 7l5 5-5 5M12.5 17H19",
  alert: "M12 8v5M12 16.5v.1M10.3 4.5 3.2 17a2 2 0 0 0 1.7 3h14.2a2 2 0 0 0 1.7-3L13.7 4.5a2 2 0 0 0-3.400 0z",
  close: "M6 6l12 12M18 6 6 18",
  question: "M9 9.2a3 3 0 1 1 4.4 2.6c-.9.5-1.4 1.1-1.4 2.2M12 17.4v.1",
  pause: "M9 6v12M15 6v12",
  file: "M7 4h7l4 4v11a1 1 0 0 1-1 1H7a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM14 4v4h4",
} as const;

/** A small drawing beside or instead of a label; the label is the reader's. */
export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
