// Reading UI messages.

export const textOf = (message) =>
  (message?.parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");

/** All parts of tool `name` in `messages`, in order. */
export const toolParts = (messages, name) => messages.flatMap((m) => m.parts).filter((part) => part.type === `tool-${name}`);

/** Who spoke, as letters: "uaua". */
export const roles = (messages) => messages.map((message) => message.role[0]).join("");

/** What the fixture's model answers to `N=<n>`. */
export const words = (n) => Array.from({ length: n }, (_, i) => `t${i} `).join("");

/** What a person sees of messages, for comparing: the marks of steps left out. */
export const visible = (messages) =>
  messages.map(({ id, role, parts }) => ({ id, role, parts: parts.filter((part) => part.type !== "step-start") }));
