import type { UIMessage } from "ai";

const RETRY_MS = 1000;

/**
 * The stored messages of a conversation, for `useAgentChat`.
 *
 * While the server cannot be reached it asks again, so that a conversation
 * opened during a restart shows up by itself. An answer that is no list gives
 * an empty one: the socket tells why the agent refuses, and brings the
 * messages too once it is open.
 */
export async function loadHistory({ url }: { url?: string | undefined }): Promise<UIMessage[]> {
  if (!url) return [];
  const address = new URL(url);
  address.pathname += "/get-messages";
  for (;;) {
    const response = await fetch(address).catch(() => undefined);
    if (response) return response.ok ? ((await response.json()) as UIMessage[]) : [];
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
