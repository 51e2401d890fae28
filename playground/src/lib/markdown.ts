/**
 * The small part of Markdown that chat answers use, as a tree: paragraphs,
 * line breaks, headings, lists, fenced code, bold, emphasis, inline code and
 * links. It makes data, not HTML; what it does not know stays text.
 */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong"; children: Inline[] }
  | { kind: "em"; children: Inline[] }
  | { kind: "link"; href: string; text: string };

export type Block =
  | { kind: "paragraph"; lines: Inline[][] }
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: Inline[][] };

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^(#{1,6}) +(\S.*)$/;
const BULLET = /^\s{0,8}[-*+]\s+(.*)$/;
const NUMBERED = /^\s{0,8}(\d{1,9})[.)]\s+(.*)$/;

/** Splits a text into blocks. A fence that is still open (streaming) runs to the end. */
export function parseMarkdown(text: string): Block[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [block, next] = readFence(lines, at) ?? readHeading(line, at) ?? readList(lines, at) ?? readParagraph(lines, at);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

type Read = [block: Block, next: number];

function readFence(lines: string[], at: number): Read | undefined {
  const open = FENCE.exec(lines[at]!);
  if (!open) return undefined;
  const mark = open[1]!;
  const isClose = (line: string) => line.trim().startsWith(mark) && line.trim().replaceAll(mark[0]!, "") === "";
  let end = at + 1;
  while (end < lines.length && !isClose(lines[end]!)) end += 1;
  return [{ kind: "code", language: open[2] ?? "", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function readHeading(line: string, at: number): Read | undefined {
  const heading = HEADING.exec(line);
  return heading ? [{ kind: "heading", level: heading[1]!.length, children: parseInline(heading[2]!) }, at + 1] : undefined;
}

function readList(lines: string[], at: number): Read | undefined {
  const numbered = NUMBERED.exec(lines[at]!);
  if (!numbered && !BULLET.test(lines[at]!)) return undefined;
  const items: Inline[][] = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const item = numbered ? NUMBERED.exec(lines[end]!)?.[2] : BULLET.exec(lines[end]!)?.[1];
    if (item === undefined) break;
    items.push(parseInline(item));
  }
  return [{ kind: "list", ordered: !!numbered, start: Number(numbered?.[1] ?? 1), items }, end];
}

function readParagraph(lines: string[], at: number): Read {
  let end = at + 1;
  while (end < lines.length && !startsBlock(lines[end]!)) end += 1;
  return [{ kind: "paragraph", lines: lines.slice(at, end).map(parseInline) }, end];
}

const startsBlock = (line: string) => !line.trim() || [FENCE, HEADING, BULLET, NUMBERED].some((start) => start.test(line));

// In the order of precedence: code, link, bold, emphasis, bare address.
const INLINE =
  /(`+)(?<code>.+?)\1(?!`)|\[(?<label>[^\]]+)\]\((?<href>[^()\s]+)\)|\*\*(?<strong>\S(?:.*?\S)?)\*\*(?!\*)|(?<![\w*])\*(?<em>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])|(?<bare>https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])/g;

/** A longer line stays plain: the patterns may look ahead to its end from each of its marks. */
const LONGEST = 8000;

/** Parses one line. */
export function parseInline(line: string): Inline[] {
  if (line.length > LONGEST) return [{ kind: "text", text: line }];
  const out: Inline[] = [];
  let done = 0;
  for (const match of line.matchAll(INLINE)) {
    if (match.index > done) out.push({ kind: "text", text: line.slice(done, match.index) });
    out.push(toInline(match.groups!));
    done = match.index + match[0].length;
  }
  if (done < line.length) out.push({ kind: "text", text: line.slice(done) });
  return out;
}

function toInline(found: Record<string, string | undefined>): Inline {
  if (found["code"] !== undefined) return { kind: "code", text: found["code"] };
  if (found["href"] !== undefined) return { kind: "link", href: found["href"], text: found["label"]! };
  if (found["strong"] !== undefined) return { kind: "strong", children: parseInline(found["strong"]) };
  if (found["em"] !== undefined) return { kind: "em", children: parseInline(found["em"]) };
  return { kind: "link", href: found["bare"]!, text: found["bare"]! };
}
