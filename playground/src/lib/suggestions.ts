/** A message to begin with, and what it shows. */
export type Suggestion = { text: string; shows: string };

type Introduction = { about: string; suggestions: Suggestion[] };

const LONG = { text: "long 300", shows: "a long answer: reload it, stop it, open it twice" };
const RECAP = { text: "recap", shows: "what the model is shown of what you said" };
const HELP = { text: "help", shows: "what the demo model understands" };

/** What suits the built-in demo model with any agent. */
const ANY: Introduction = {
  about:
    "Reload in mid-answer, open a second tab, restart the server: the conversation goes on. These suit the built-in demo model:",
  suggestions: [LONG, { text: "think about tea", shows: "reasoning before the answer" }, RECAP, HELP],
};

/** The agents of examples/strategies.py: what becomes of messages that come while one answers. */
function overlapping(becomes: string): Introduction {
  const todo = "Start a long answer, send some messages while it is written, and “recap” at the end:";
  return { about: `${becomes} ${todo}`, suggestions: [{ text: "long 200", shows: "a long answer" }, RECAP] };
}

/** What shows the agents of examples/ at work, by class name. */
const EXAMPLES: Record<string, Introduction> = {
  Assistant: {
    about: ANY.about,
    suggestions: [
      { text: "What's the weather in Paris?", shows: "a tool on the server" },
      { text: 'Delete the note "important dates"', shows: "a tool that asks you first" },
      { text: "What is my local time?", shows: "a tool that this page offers" },
      { text: "What is the window size?", shows: "a tool that this browser runs for the server" },
      { text: "Show me the browser details", shows: "the same, once you approve" },
      { text: 'Ask the user "Coffee or tea?"', shows: "a question to you, for as long as it takes" },
      LONG,
      HELP,
    ],
  },
  Queue: overlapping("This agent answers every message, one after the other."),
  Latest: overlapping("This agent answers only the newest of the messages that waited; it never sees the others."),
  Merge: overlapping("This agent answers all messages that waited in one go."),
  Drop: overlapping("This agent takes no message while it answers."),
  Debounced: overlapping("This agent answers only the newest of the messages that waited, after a second of quiet."),
};

export function introductionTo(agentClass: string): Introduction {
  return EXAMPLES[agentClass] ?? ANY;
}
