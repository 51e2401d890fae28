import type { FileUIPart } from "ai";
import { safeUrl } from "../lib/safeUrl";
import { Icon } from "./Icon";

/** An attached file: pictures show, others can be downloaded. */
export function FilePart({ part }: { part: FileUIPart }) {
  const label = part.filename ?? part.mediaType;
  const isImage = part.mediaType.startsWith("image/");
  const href = safeUrl(part.url, ["http:", "https:", "data:", "blob:"]);
  if (href && isImage) return <img className="picture" src={href} alt={part.filename ?? "Attached picture"} data-testid="file" />;
  return (
    <a className="file" href={href} download={part.filename ?? true} data-testid="file">
      <Icon name="file" />
      {label}
    </a>
  );
}
