import { describe, expect, test } from "vitest";
import { type Inline, parseInline, parseMarkdown } from "../src/lib/markdown";

const text = (value: string): Inline => ({ kind: "text", text: value });

describe("blocks", () => {
  test("an empty line separates paragraphs, a line break stays one", () => {
    expect(parseMarkdown("one\ntwo\n\nthree")).toEqual([
      { kind: "paragraph", lines: [[text("one")], [text("two")]] },
      { kind: "paragraph", lines: [[text("three")]] },
    ]);
  });

  test("a fence keeps its lines as they are", () => {
    expect(parseMarkdown("```py\na = **b**\n\n  # c\n```\nafter")).toEqual([
      { kind: "code", language: "py", text: "a = **b**\n\n  # c" },
      { kind: "paragraph", lines: [[text("after")]] },
    ]);
  });

  test("a fence that is not closed yet runs to the end", () => {
    expect(parseMarkdown("```\nlet x")).toEqual([{ kind: "code", language: "", text: "let x" }]);
  });

  test("a longer fence may hold a shorter one", () => {
    expect(parseMarkdown("````\n```\n````")).toEqual([{ kind: "code", language: "", text: "```" }]);
  });

  test("lists end where their marks end", () => {
    expect(parseMarkdown("- a\n* b\n3. c\n4. d\ntext")).toEqual([
      { kind: "list", ordered: false, start: 1, items: [[text("a")], [text("b")]] },
      { kind: "list", ordered: true, start: 3, items: [[text("c")], [text("d")]] },
      { kind: "paragraph", lines: [[text("text")]] },
    ]);
  });

  test("a heading is one line", () => {
    expect(parseMarkdown("## Two words\nbody")).toEqual([
      { kind: "heading", level: 2, children: [text("Two words")] },
      { kind: "paragraph", lines: [[text("body")]] },
    ]);
  });
});

describe("inline", () => {
  test("bold, emphasis and code", () => {
    expect(parseInline("a **b *c*** `d **e**`")).toEqual([
      text("a "),
      { kind: "strong", children: [text("b "), { kind: "em", children: [text("c")] }] },
      text(" "),
      { kind: "code", text: "d **e**" },
    ]);
  });

  test("stars that are arithmetic stay", () => {
    expect(parseInline("2 * 3 * 4 and 2*3*4")).toEqual([text("2 * 3 * 4 and 2*3*4")]);
  });

  test("links and bare addresses", () => {
    expect(parseInline("[x](https://a.example/b) or https://c.example/d.")).toEqual([
      { kind: "link", href: "https://a.example/b", text: "x" },
      text(" or "),
      { kind: "link", href: "https://c.example/d", text: "https://c.example/d" },
      text("."),
    ]);
  });

  test("marks that are not closed yet stay text", () => {
    expect(parseInline("**bold to be, `code to be")).toEqual([text("**bold to be, `code to be")]);
  });
});

test("no text is lost, whatever it is", () => {
  const odd = "<b>&amp;</b> ** ` [a]( ~~~ # 1. - \u2028 🐎";
  const flat = (pieces: Inline[]): string => pieces.map((p) => ("children" in p ? flat(p.children) : p.text)).join("");
  expect(flat(parseInline(odd))).toBe(odd);
});

test("long hostile lines are parsed in a moment", () => {
  const lines = ["`", "**a ", "*a", "[", "https://", "# "].map((mark) => mark.repeat(100_000 / mark.length));
  const start = performance.now();
  for (const line of lines) parseMarkdown(line);
  for (const line of lines) parseMarkdown(line.slice(0, 7900));
  expect(performance.now() - start).toBeLessThan(2000);
});
