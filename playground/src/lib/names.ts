const FIRST = "amber brisk calm clear early fair gentle kind late lucid mild plain quiet steady still warm".split(" ");
const SECOND = "brook cedar cove dune fern glade harbor heron lark maple meadow otter pine reed willow wren".split(" ");

/** The longest conversation name that the page sends. */
export const MAX_NAME = 120;

/** A name for a new conversation: readable aloud, unlikely to be taken. */
export function freshName(): string {
  const [a, b, c] = crypto.getRandomValues(new Uint16Array(3)) as unknown as [number, number, number];
  return `${FIRST[a % FIRST.length]}-${SECOND[b % SECOND.length]}-${100 + (c % 900)}`;
}
