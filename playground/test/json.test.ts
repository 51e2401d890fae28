import { expect, test } from "vitest";
import { readAnswer, readObject } from "../src/lib/json";

test("arguments are a JSON object", () => {
  expect(readObject(' {"a": [1]} ')).toEqual({ value: { a: [1] } });
});

test.each(["", "{", '{"a": }', "[1]", "null", "1", '"text"'])("%j are none, and it says why", (text) => {
  expect(readObject(text).value).toBeUndefined();
  expect(readObject(text).problem).toMatch(/JSON/);
});

test.each([
  ["12", 12],
  ['{"a": 1}', { a: 1 }],
  ["a text", "a text"],
])("the result %j is %j", (text, value) => {
  expect(readAnswer(text)).toEqual(value);
});
