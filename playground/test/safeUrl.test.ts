import { expect, test } from "vitest";
import { safeUrl } from "../src/lib/safeUrl";

test.each(["https://a.example/x", "http://a.example", "/here", "page.html"])("%s may be linked", (url) => {
  expect(safeUrl(url)).toBe(url);
});

test.each(["javascript:alert(1)", " JavaScript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "vbscript:x", "http://"])(
  "%j may not",
  (url) => {
    expect(safeUrl(url)).toBeUndefined();
  },
);
