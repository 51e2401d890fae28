/** One agent class that this server offers. */
export type AgentClass = {
  /** The class name, as people read it. */
  class: string;
  /** The same in URLs: `/agents/{path}/{name}`. */
  path: string;
};

/** What the server says about itself at `GET /playground.json`. */
export type Catalog = { agents: AgentClass[]; version: string };

export async function loadCatalog(): Promise<Catalog> {
  const response = await fetch("/playground.json");
  if (!response.ok) throw new Error(`The server answered ${response.status} to /playground.json.`);
  return (await response.json()) as Catalog;
}
