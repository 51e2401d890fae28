import type { AITool } from "@cloudflare/think/react";

/**
 * Tools that only a browser can run, in the two ways of the published hook.
 *
 * Every open tab runs a call; the server takes the first result. So they only look at things.
 */

type Run = (input: unknown) => unknown;

/** Offered by the page itself: the hook sends their schemas along, and runs them without being asked. */
export const OFFERED: Record<string, AITool> = {
  getUserTimezone: {
    description: "The time zone of the user, as an IANA name. Asks the user's browser.",
    parameters: { type: "object", properties: {} },
    execute: async () => Intl.DateTimeFormat().resolvedOptions().timeZone,
  },
  getLocalTime: {
    description: "The date and time where the user is. Asks the user's browser.",
    parameters: { type: "object", properties: {} },
    execute: async () => new Date().toLocaleString("en-GB", { dateStyle: "full", timeStyle: "short" }),
  },
};

/** Declared by the server (see examples/assistant.py), answered here through `onToolCall`. */
export const ANSWERED: Record<string, Run> = {
  get_window_size: () => ({ width: innerWidth, height: innerHeight }),
  get_browser_details: () => ({
    languages: navigator.languages.join(", "),
    screen: `${screen.width} × ${screen.height}`,
    colours: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
  }),
};

/** Whether this page gives the results of a tool by itself. */
export function runsHere(tool: string): boolean {
  return Object.hasOwn(OFFERED, tool) || Object.hasOwn(ANSWERED, tool);
}
