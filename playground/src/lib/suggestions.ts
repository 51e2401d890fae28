/** A message to begin with, and what it shows. */
export type Suggestion = { text: string; shows: string };

type Introduction = { about: string; suggestions: Suggestion[] };

const LONG = { text: "long 300", shows: "a long answer: reload it, stop it, open it twice" };
const HELP = { text: "help", shows: "what the demo model understands" };

/** What suits the built-in demo model with any agent. */
const ANY: Introduction = {
  about:
    "Reload in mid-answer, open a second tab, restart the server: the conversation goes on. These suit the built-in demo model:",
  suggestions: [LONG, { text: "think about tea", shows: "reasoning before the answer" }, HELP],
};

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
};

export function introductionTo(agentClass: string): Introduction {
  return EXAMPLES[agentClass] ?? ANY;
}
