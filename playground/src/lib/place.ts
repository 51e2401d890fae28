import { freshName } from "./names";

/** Which conversation the page shows: `?agent=…&name=…` in its address. */
export type Place = { agent: string; name: string };

const LAST = "perdure.last-conversation";

export function placeUrl(place: Place): string {
  return `?${new URLSearchParams(place)}`;
}

/**
 * Reads the address. What it leaves open comes from the last conversation in
 * this browser, else the first agent and a new name.
 */
export function readPlace(agents: string[]): Place {
  const query = new URLSearchParams(location.search);
  const last = recall();
  const known = (agent: string | null | undefined) => (agent && agents.includes(agent) ? agent : undefined);
  return {
    agent: known(query.get("agent")) ?? known(last?.agent) ?? agents[0] ?? "",
    name: query.get("name")?.trim() || last?.name || freshName(),
  };
}

/** Storage may be closed to the page (private windows): then nothing is remembered. */
export function remember(place: Place): void {
  try {
    localStorage.setItem(LAST, JSON.stringify(place));
  } catch {
    return;
  }
}

function recall(): Partial<Place> | undefined {
  try {
    return JSON.parse(localStorage.getItem(LAST) ?? "{}") as Partial<Place>;
  } catch {
    return undefined;
  }
}
