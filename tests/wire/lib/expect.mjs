// What a case says about what it sees. Needs no package, so that cases can be listed before anything is installed.

import { setTimeout as pause } from "node:timers/promises";

/** A case's own verdict, as against a fault in the runner. */
export class Unmet extends Error {}

export function ok(condition, what) {
  if (!condition) throw new Unmet(what);
}

/** Compares as JSON: what matters is what travels. */
export function equal(got, want, what) {
  const [left, right] = [JSON.stringify(got), JSON.stringify(want)];
  ok(left === right, `${what}: got ${left}, want ${right}`);
}

export async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Unmet("the call should have been rejected");
}

/**
 * Waits until `look` gives something truthy, and gives that. `what` says what is
 * awaited; as a function it is asked at the end and can tell what is there instead.
 */
export async function eventually(look, what, ms = 10_000) {
  const deadline = performance.now() + ms;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (performance.now() > deadline) throw new Unmet(`waited ${ms} ms for ${typeof what === "function" ? what() : what}`);
    await pause(5);
  }
}
