// Runs the published JavaScript clients against a server and says, case by case, whether they get what they expect.
//
//   node run.mjs URL [--agent BenchAgent] [--only SUBSTRING] [--case NAME]… [--repeat N] [--timeout MS] [--trace]
//   node run.mjs --list          the cases, one a line: area, tab, name
//
// The server is tests/wire/app.py; for most cases any that provides the benchmark fixture's agents will do. The page is jsdom's and its WebSocket is `ws`; nothing else is
// replaced. Closes with `N passed, M failed`, and fails if a case did.

import { parseArgs } from "node:util";
import { areas } from "./cases/index.mjs";
import { Unmet } from "./lib/expect.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    agent: { type: "string", default: "BenchAgent" },
    only: { type: "string", default: "" },
    case: { type: "string", multiple: true, default: [] },
    repeat: { type: "string", default: "1" },
    timeout: { type: "string", default: "20000" },
    list: { type: "boolean", default: false },
    trace: { type: "boolean", default: false }, // print the frames of failed cases
  },
});

if (options.list) {
  for (const [area, cases] of Object.entries(areas)) for (const name of Object.keys(cases)) console.log(`${area}\t${name}`);
  process.exit(0);
}
if (positionals.length !== 1) {
  console.error("usage: node run.mjs URL [options]; the first lines of this file list them");
  process.exit(2);
}

const all = Object.assign({}, ...Object.values(areas));
for (const name of options.case) {
  if (!(name in all)) {
    console.error(`no such case: ${name}`);
    process.exit(2);
  }
}
const chosen = Object.entries(all).filter(
  ([name]) => name.includes(options.only) && (options.case.length === 0 || options.case.includes(name)),
);

const { frames, openBrowser, sockets } = await import("./lib/browser.mjs");
openBrowser(positionals[0]);
const { Context, Server } = await import("./lib/context.mjs");
const server = new Server(positionals[0], options.agent);

// What the clients print belongs to the case that is running: shown with a failure, dropped otherwise.
const printed = [];
for (const level of ["warn", "error"]) console[level] = (...words) => printed.push(words.map(String).join(" "));

const limit = (ms) =>
  new Promise((_, reject) => setTimeout(() => reject(new Unmet(`not over after ${ms} ms`)), ms).unref());

async function runCase(name, body) {
  const start = performance.now();
  const context = new Context(server);
  printed.length = frames.length = 0;
  let line;
  let passed = false;
  try {
    const detail = await Promise.race([body(context), limit(Number(options.timeout))]);
    passed = true;
    line = `PASS ${name}${detail ? ` (${detail})` : ""}`;
  } catch (error) {
    const noise = printed.slice(0, 2).map((text) => text.slice(0, 200)).join(" | ");
    line = `FAIL ${name}: ${error instanceof Unmet ? error.message : error?.stack}${noise ? ` {console: ${noise}}` : ""}`;
  }
  console.log(`${line} [${Math.round(performance.now() - start)} ms]`);
  if (options.trace && !passed) console.log(frames.map((frame) => `    ${frame}`).join("\n"));
  await context.close();
  return passed;
}

let passed = 0;
let failed = 0;
for (let round = 0; round < Number(options.repeat); round += 1) {
  for (const [name, body] of chosen) (await runCase(name, body)) ? (passed += 1) : (failed += 1);
}
console.log(`${passed} passed, ${failed} failed`);
for (const socket of sockets) socket.terminate();
process.exit(failed ? 1 : 0);
