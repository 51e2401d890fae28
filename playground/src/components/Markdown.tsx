import { memo } from "react";
import { type Block, type Inline, parseMarkdown } from "../lib/markdown";
import { safeUrl } from "../lib/safeUrl";

/** Shows Markdown as React elements: whatever the text holds, none of it becomes HTML. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return parseMarkdown(text).map((block, index) => <BlockView key={index} block={block} />);
});

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case "code":
      return (
        <pre className="code" data-language={block.language || undefined}>
          <code>{block.text}</code>
        </pre>
      );
    case "heading": {
      // The page has h1 and h2 of its own.
      const Tag = block.level <= 1 ? "h3" : block.level === 2 ? "h4" : "h5";
      return (
        <Tag>
          <Run of={block.children} />
        </Tag>
      );
    }
    case "list": {
      const items = block.items.map((item, index) => (
        <li key={index}>
          <Run of={item} />
        </li>
      ));
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "paragraph":
      return (
        <p>
          {block.lines.map((line, index) => (
            <span key={index}>
              {index > 0 && <br />}
              <Run of={line} />
            </span>
          ))}
        </p>
      );
  }
}

function Run({ of }: { of: Inline[] }) {
  return of.map((piece, index) => <Piece key={index} piece={piece} />);
}

function Piece({ piece }: { piece: Inline }) {
  switch (piece.kind) {
    case "text":
      return piece.text;
    case "code":
      return <code>{piece.text}</code>;
    case "strong":
      return (
        <strong>
          <Run of={piece.children} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Run of={piece.children} />
        </em>
      );
    case "link": {
      const href = safeUrl(piece.href, ["http:", "https:", "mailto:"]);
      if (!href) return piece.text;
      return (
        <a href={href} target="_blank" rel="noreferrer nofollow">
          {piece.text}
        </a>
      );
    }
  }
}
