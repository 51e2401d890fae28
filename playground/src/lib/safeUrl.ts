/** `url` if a link or picture may lead there, else undefined. Text of a model or a tool is not trusted. */
export function safeUrl(url: string, schemes: readonly string[] = ["http:", "https:"]): string | undefined {
  const base = typeof location === "undefined" ? "http://localhost" : location.href;
  return URL.canParse(url, base) && schemes.includes(new URL(url, base).protocol) ? url : undefined;
}
