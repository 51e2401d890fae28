/**
 * What the server writes where nobody answered: the protocol has no field of its own for it. tests/browser proves that
 * these are still the server's words.
 */

/** The error of a call that the conversation, or the end of the server, left without a result. */
export const INTERRUPTED = "The tool call was interrupted before a result was recorded.";

/** The error of a call that was approved, and overtaken before it ran. */
export const NOT_RUN = "The tool call was approved but did not run before the next turn started.";

/** The reason of a question that nobody decided in time. */
export const EXPIRED = "The approval request expired: nobody decided in time.";
