/** How the page's socket stands with the server. */
export type Connection =
  | { state: "connecting" }
  | { state: "connected" }
  | { state: "reconnecting" }
  | { state: "refused"; reason: string };

type ConnectionError = { code: number; reason: string } | null;

export function describeConnection(identified: boolean, wasOpen: boolean, error: ConnectionError): Connection {
  if (error) return { state: "refused", reason: error.reason || `The server closed the connection (${error.code}).` };
  if (identified) return { state: "connected" };
  return { state: wasOpen ? "reconnecting" : "connecting" };
}
