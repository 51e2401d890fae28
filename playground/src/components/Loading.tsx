/** Stands in while something is fetched; shows itself only if that takes a moment. */
export function Loading() {
  return <output className="loading">Loading…</output>;
}
