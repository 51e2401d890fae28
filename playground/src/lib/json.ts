/** The JSON object in a text, or what is wrong with it, for people. */
export function readObject(text: string): { value: Record<string, unknown>; problem?: never } | { value?: never; problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { problem: "The arguments must be a JSON object: { … }" };
  }
  return { value: value as Record<string, unknown> };
}

/** What a person typed as a tool's result: the JSON value that it is, else the text. */
export function readAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
