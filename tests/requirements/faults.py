"""Faults that systems of this kind are known for, by area: the situation, then what must be seen.

Short names of frames: REQ, RESULT and APPROVE are the chat request, `cf_agent_tool_result` and
`cf_agent_tool_approval`; UPDATED and MESSAGES are `cf_agent_message_updated` and `cf_agent_chat_messages`; RESUME?,
RESUMING, ACK, NONE and PENDING are the `cf_agent_stream_*` frames; RECOVERING is `cf_agent_chat_recovering`. A *strict
provider* refuses a call without result, a result without call, call input that is no object, a request that ends with
an assistant item, an id used twice in a message, and tool names outside `[A-Za-z0-9_-]{1,64}`. Storage is judged by
`get-messages` after a reload, frames on at least two sockets, with model requests and tool runs counted.
"""

from typing import Final

from tests.requirements.owners import BASE, DURABLE, LATER, MCP, SESSIONS, TOOLS, WORKSPACE
from tests.requirements.rows import R, Requirement, table

__all__ = ["ROWS"]

ROWS: Final[tuple[Requirement, ...]] = (
    *table(
        "fault",
        "faults, client tools",
        R(
            "CT-01",
            TOOLS,
            "Two client calls in one step, answered 300 ms apart in either order: no model request in between, "
            "one after the second with both outputs and `continuation` true.",
        ),
        R(
            "CT-03",
            TOOLS,
            "Three results in one burst on a store that reads 20 ms late: all three parts have the output sent "
            "for them, one continuation, and all tabs show one and the same message.",
        ),
        R(
            "CT-05",
            TOOLS,
            "A question to the human beside a fast tool stays open for 10 minutes: no model request, the call "
            "stays input-available, the agent may sleep; its answer starts one continuation with both outputs.",
        ),
        R(
            "CT-07",
            TOOLS,
            "A single failed client tool with autoContinue false: the part is output-error with its text, "
            "UPDATED goes out, and the model is not asked.",
        ),
        R(
            "CT-09",
            TOOLS,
            "A restart between call and answer, the result with or without schemas: the next model request "
            "lists the tool, and its next call goes to the client.",
        ),
        R(
            "CT-10",
            TOOLS,
            "A next request whose tools list is empty takes the earlier client tools away; so does a clear.",
        ),
        R(
            "CT-11",
            TOOLS,
            "A client tool named like a server tool (read) replaces it for this turn and the workspace is not "
            "touched; the next turn without it runs on the server.",
        ),
        R(
            "CT-12",
            TOOLS,
            "The call and answer of a client tool three turns ago are still in what the model sees, unless "
            "compaction was set up.",
        ),
        R(
            "CT-13",
            TOOLS,
            "A result for an unknown call id, on an empty chat and on one with text only: nothing stored, no "
            "model request, the socket stays open.",
        ),
        R(
            "CT-14",
            TOOLS,
            "A gated server tool is answered with output-error and autoContinue: it does not run, the part has "
            "the text, the model goes on; a missing text gets a default that is not empty.",
        ),
        R(
            "CT-15",
            TOOLS,
            "Call, answer, second call, answer, text: one assistant message with its parts in order, frames "
            "with continuation true, no new message id in their start chunk, and get-messages agrees.",
            note="Decision 2.",
        ),
        R(
            "CT-17",
            TOOLS,
            "Provider metadata on a call (a thought signature) is stored, survives a restart and goes back "
            "with the answer.",
        ),
        R(
            "CT-18",
            TOOLS,
            "Custom body fields reach the continuation, after a restart too; a later request without them sees none.",
        ),
        R(
            "CT-19",
            TOOLS,
            "Odd clientTools: of two with one name the last counts, no parameters is an open object schema, an "
            "entry without name is ignored, and the turn runs.",
        ),
    ),
    *table(
        "fault",
        "faults, approvals",
        R(
            "AP-01",
            TOOLS,
            "After approve the tool runs once with its stored arguments; the part goes approval-requested, "
            "approval-responded, output-available; every tab gets the output, and a reload shows the same.",
        ),
        R(
            "AP-02",
            TOOLS,
            "Deny: the tool is not called, the part is output-denied, the next request holds a result that "
            "says denied, and a strict provider takes it.",
        ),
        R(
            "AP-03",
            TOOLS,
            "The predicate decides for each call: of two calls of one tool the small one runs at once, the "
            "large one waits, one approval is asked, the continuation comes after it; async predicates too.",
        ),
        R(
            "AP-04",
            TOOLS,
            "A reload while the question is on screen: the part is approval-requested with an approval id that "
            "is not empty, on the new socket and in get-messages.",
        ),
        R(
            "AP-05",
            TOOLS,
            "An approval part without id gets one derived from the call id; an id there is, and other fields, "
            "are kept, with approved added.",
        ),
        R(
            "AP-08",
            TOOLS,
            "A gate that always says yes is not asked again when the approved call runs: one request, one execution.",
        ),
        R(
            "AP-09",
            TOOLS,
            "A gated server call beside a client call: no model request before both are answered, then the "
            "tool runs once and one request has both results.",
        ),
        R(
            "AP-13",
            TOOLS,
            "An approved tool that raises: output-error with its message, stored and broadcast; the model goes "
            "on, and nothing says interrupted.",
        ),
        R(
            "AP-14",
            TOOLS,
            "A restart and two hours of waiting on an open question: no error banner, still "
            "approval-requested, no model request; the answer from a new socket runs the tool once.",
        ),
        R(
            "AP-16",
            TOOLS,
            "A decision for an unknown id, a finished call or a call that was never gated, yes or no, with "
            "autoContinue: no state change, no execution, no turn.",
            note="Decision 5.",
        ),
        R(
            "AP-17",
            TOOLS,
            "A new message while an approval is open is answered with a request that a strict provider takes; "
            "other agents are not affected; a later approve does not run the tool unless it is shown as "
            "pending.",
            note="Decision 6: the new message settles the open call as an error, so the late approve changes nothing.",
        ),
        R(
            "AP-18",
            TOOLS,
            "A gate predicate that raises: the tool does not run without a person (a question or a tool error, "
            "either will do), and the turn does not fail.",
        ),
        R(
            "AP-19",
            TOOLS,
            "A tool that is gone when its approval comes: the part becomes an error that says not available, "
            "and the model goes on.",
        ),
        R(
            "AP-20",
            TOOLS,
            "Of three tabs the second decides: all three get the new state, and the others see the stream that "
            "follows.",
        ),
    ),
    *table(
        "fault",
        "faults, continuation and coalescing",
        R(
            "CC-01",
            TOOLS,
            "RESUME? in the same tick as the result: never NONE, but PENDING or RESUMING and then the chunks; "
            "one turn.",
        ),
        R(
            "CC-03",
            TOOLS,
            "Another tab probes during a continuation: it gets a correlated answer whose reason is not idle, "
            "or an offer; it sees live chunks, and the owner's handshake is undisturbed.",
        ),
        R(
            "CC-05",
            TOOLS,
            "A continuation that produces nothing: the client gets done or NONE, no empty message is stored, "
            "the next request works.",
        ),
        R(
            "CC-06",
            TOOLS,
            "Stop by the continuation's id: the model is aborted within a second, done for that id, the "
            "partial stored once, the next request works; cancelling the old finished id does nothing.",
        ),
        R(
            "CC-07",
            TOOLS,
            "A clear between answer and continuation, or during it: the model is not asked or is aborted, "
            "nothing is stored, those who wait are released.",
        ),
        R(
            "CC-08",
            TOOLS,
            "ctx.continuation is false for a request, true after a client result, true after an approval, "
            "false for a regenerate.",
        ),
        R(
            "CC-09",
            DURABLE,
            "A half answer is continued after a crash: the model request does not end with an assistant item, "
            "and the helper item is neither stored nor shown.",
            note="In the continuation area; moved to the issue that builds recovery.",
        ),
        R(
            "CC-10",
            DURABLE,
            "A stall after one of two calls was answered, and the second answer later: one model request in total.",
            note="In the continuation area; moved to the issue that builds the watchdog.",
        ),
    ),
    *table(
        "fault",
        "faults, concurrency",
        R(
            "CO-01",
            TOOLS,
            "queue: three requests 50 ms apart give three turns, one after the other, whose chunks never mix, "
            "and the second prompt holds the first answer.",
        ),
        R(
            "CO-02",
            TOOLS,
            "latest: A slow, then B, C, D: turns A and D, users B and C stored, a done frame for B and for C, "
            "on_chat_response fires twice.",
            note="Decision 7: B and C are left out of the prompt of D.",
        ),
        R(
            "CO-03",
            TOOLS,
            "drop: an overlapping request is not stored and gets done; its sender is told the true list; the "
            "running turn is unaffected.",
        ),
        R(
            "CO-04",
            TOOLS,
            "merge: A slow, then B and C: two turns, the second prompt ends with two user items, B's and C's, "
            "and B's request is closed.",
        ),
        R(
            "CO-05",
            TOOLS,
            "debounce of 300 ms: one turn for the last of three, no earlier than 300 ms after it; -1, NaN, "
            "text or nothing count as 750 ms.",
        ),
        R(
            "CO-06",
            TOOLS,
            "drop touches submits only: regenerate, result, approval and save_messages are queued behind the "
            "turn, a clear acts at once.",
        ),
        R(
            "CO-09",
            TOOLS,
            "A clear during a debounce of 5 s ends every waiting request within a second, and no turn follows.",
        ),
        R(
            "CO-10",
            TOOLS,
            "A tool that calls save_messages and waits for it gets a clear error at once, and the outer turn ends.",
        ),
        R(
            "CO-11",
            TOOLS,
            "A tool that calls add_messages: no deadlock, the note is stored once though sent twice, and the "
            "answer ends in its right place of the tree.",
        ),
        R(
            "CO-12",
            TOOLS,
            "The same request sent twice 20 ms apart and once more after its end: the user message is stored "
            "once, and no answer twice.",
            note="Decision 8: the same content under a known id is a redelivery.",
        ),
    ),
    *table(
        "fault",
        "faults, resume and reconnect",
        R(
            "RS-01",
            BASE,
            "Reload after the tenth of 30 deltas: replayed chunks in order, the mark, then live ones; the text "
            "equals what is stored, and nothing live precedes the ack.",
        ),
        R("RS-02", BASE, "A probe on an idle agent: NONE with reason idle and its probeId within one round trip."),
        R(
            "RS-03",
            BASE,
            "Reconnecting before the first chunk, queued or with a slow model: PENDING, later RESUMING and the "
            "chunks; NONE if the turn ends without streaming.",
        ),
        R(
            "RS-04",
            BASE,
            "Offer on connect and offer on request, both acked: every replay begins with its own start chunk, "
            "and no chunk is lost between the two.",
        ),
        R(
            "RS-06",
            BASE,
            "Connecting in mid-stream: no snapshot without the running answer before the replay ends; on an "
            "idle connect the snapshot comes.",
        ),
        R(
            "RS-07",
            BASE,
            "The stream ends between offer and ack, also a second before it: the whole stream or the stored "
            "result, then done; after a clear just done.",
        ),
        R(
            "RS-08",
            BASE,
            "Acks for an old id, an empty id and no id during a stream: nobody's stream is disturbed, and the "
            "sender is not left out of live frames.",
        ),
        R(
            "RS-09",
            BASE,
            "The socket closes after 100 of 5,000 replayed chunks: no unhandled exception, the other tab keeps "
            "its stream, the turn completes.",
        ),
        R(
            "RS-11",
            DURABLE,
            "Recovery continues a crashed turn: a new socket can follow to its end, nothing stays active under "
            "the old id, the last probe says idle.",
        ),
        R(
            "RS-12",
            BASE,
            "The only socket closes at delta 3 of 20 without a cancel: the turn runs to its end and is stored in full.",
        ),
        R(
            "RS-13",
            BASE,
            "Housekeeping removes a finished stream's buffer after the grace period, keeps that of one running "
            "for 90 minutes, and lets the agent sleep when nothing is left.",
        ),
        R(
            "RS-14",
            TOOLS,
            "A reload during and right after a continuation: the client's model equals storage both times, "
            "with nothing appended twice.",
        ),
        R(
            "RS-15",
            BASE,
            "A chunk of 3 MB: the live client gets it, the turn does not fail, and a client that resumes gets "
            "the other chunks and the message as stored.",
        ),
        R(
            "RS-16",
            BASE,
            "Deltas whose start was never seen: the text is in the stored parts, and clients get a start "
            "before the delta.",
        ),
    ),
    *table(
        "fault",
        "faults, multi-tab",
        R(
            "MT-01",
            BASE,
            "A request from the first of three sockets: the same chunks in the same order on each, once, and "
            "done for all.",
        ),
        R(
            "MT-02",
            BASE,
            "A tab that joins at delta 10 and acks 300 ms later: nothing in between, then replay and live "
            "without gap; the other tabs are unaffected.",
        ),
        R(
            "MT-03",
            TOOLS,
            "Tab 2 answers a call that tab 1 caused: UPDATED with the output reaches the others, and a second "
            "answer from tab 1 is ignored.",
        ),
        R(
            "MT-04",
            BASE,
            "chat() and then clear_messages() by server code: an open page sees the user message, the streamed "
            "answer and the list, and is then told to empty itself.",
        ),
        R(
            "MT-05",
            BASE,
            "The start chunk's messageId is the id in MESSAGES and in get-messages; no second message appears, "
            "and UPDATED never names an id the client has not seen.",
        ),
        R("MT-06", BASE, "A client pushes a shortened or edited list: storage and the other tabs stay as they were."),
        R(
            "MT-07",
            TOOLS,
            "After a denial the snapshots hold user, denied call, answer in that order; the denied call is never last.",
        ),
    ),
    *table(
        "fault",
        "faults, persistence and row size",
        R(
            "PS-01",
            BASE,
            "A tool output of 5 MB: the turn completes, the message is stored in shortened form with a mark of "
            "what was cut, chat goes on after a restart, and the same turn's model request may use it whole.",
            divergence="Messages of any size are stored byte for byte; only what the model reads of older "
            "results is cut, so no output carries a mark. The rest holds.",
        ),
        R(
            "PS-02",
            BASE,
            "Outputs of 700,000 CJK characters and of 500,000 emoji: stored, loaded again, no broken character "
            "where something is cut, valid JSON.",
        ),
        R(
            "PS-03",
            BASE,
            "A large object {rows, total: 9} is still an object with total 9 on the next turn, and "
            "plain-string outputs of an older read tool replay as well.",
        ),
        R(
            "PS-04",
            BASE,
            "A pasted text of 3 MB or a data URL of 6 MB: a clear error for that request or a stored message; "
            "the agent, the next request and the other tabs live.",
        ),
        R(
            "PS-05",
            BASE,
            "Rows with invalid JSON, no id, an unknown role, parts that are no list, or null: skipped with a "
            "warning, the good ones in order, a new turn works.",
        ),
        R(
            "PS-06",
            BASE,
            "A posted copy of the running answer under a temporary id: still one assistant for the call, with "
            "the server's id and output, and a valid prompt.",
        ),
        R(
            "PS-08",
            BASE,
            "A stale page posts approval-responded, input-available or another output for a call that has its "
            "output: the stored output stays.",
        ),
        R(
            "PS-09",
            BASE,
            "Three equal short answers posted under a mix of known and foreign ids: each maps to its own row, "
            "none doubled or swapped.",
        ),
        R(
            "PS-10",
            BASE,
            "A signature on the end of a reasoning part and a redacted block are stored and in the prompt "
            "after a restart; reasoning that is really empty goes.",
        ),
        R(
            "PS-13",
            BASE,
            "data-progress twice under one id is stored once with its last value, a transient data part not at "
            "all; live clients saw all three.",
        ),
        R(
            "PS-14",
            BASE,
            "Stop at delta 5 of 20 while late deltas still come: one assistant message with the first part, "
            "done, no second bubble, the next request works.",
        ),
        R(
            "PS-15",
            BASE,
            "A clear at delta 3, before a group of chunks is flushed: idle, empty list, no rows of the old "
            "stream come back.",
        ),
        R(
            "PS-16",
            BASE,
            "The model fails after two deltas: done with error true, and a programmatic call reports status "
            "error; nothing claims completion.",
        ),
        R(
            "PS-17",
            BASE,
            "Metadata {channel, turnMetadata, ok} on a posted user message: the reserved keys are removed, ok stays.",
        ),
    ),
    *table(
        "fault",
        "faults, crash recovery",
        R(
            "RC-01",
            DURABLE,
            "Killed while a client tool is awaited, restarted past every budget: no model request and no "
            "banner before the answer, then one continuation that knows the tools.",
        ),
        R(
            "RC-02",
            DURABLE,
            "Killed while on_client_tool_call of a chat() runs: the call is settled as an error and the model "
            "goes on or the turn ends; nothing waits for a person, and a new chat() works.",
        ),
        R(
            "RC-03",
            DURABLE,
            "Killed while a server tool runs: the call becomes an error that says interrupted, one "
            "continuation, no endless wait, no blind second run.",
        ),
        R(
            "RC-07",
            DURABLE,
            "Killed at an approval pause that is stored and in the stream buffer too: one part per call id and "
            "one text part.",
        ),
        R(
            "RC-08",
            DURABLE,
            "Every recovery crashes, limit 3: an error frame replayed to new sockets, settled outputs stored, "
            "on_exhausted once, the next request works.",
        ),
        R(
            "RC-09",
            DURABLE,
            "RECOVERING is true once at the start (for a new socket too) and false however it ends: done, "
            "skipped, failed, given up, cleared.",
        ),
        R(
            "RC-10",
            DURABLE,
            "The user's next message comes before recovery: it is answered, the old turn is skipped in "
            "silence, no double answer, no error.",
        ),
        R(
            "RC-11",
            DURABLE,
            "Killed 20 times after two deltas each: the work budget ends it with a clear reason, and other "
            "scheduled jobs live on.",
        ),
        R(
            "RC-12",
            DURABLE,
            "Over a restart and three turns repair changes the one open call, once; error, denial and output "
            "texts stay, and no UPDATED is repeated.",
        ),
        R(
            "RC-13",
            DURABLE,
            "400 MB of inline media, or a failing restore of one server, extension or job: the agent starts, "
            "answers, reports what is degraded, and memory stays bounded.",
        ),
        R("RC-14", DURABLE, "Crash, restart, clear, then the recovery timer: empty history, idle, no model request."),
        R(
            "RC-15",
            DURABLE,
            "Killed during an approved tool: error or asked again, never silently twice. Killed after it: not "
            "run again, and the text that follows is produced.",
        ),
        R(
            "RC-16",
            DURABLE,
            "A submission cancelled while it waits: its message never appears, status cancelled, and the same "
            "key returns the same record.",
        ),
    ),
    *table(
        "fault",
        "faults, sub-agent chat()",
        R(
            "SA-01",
            TOOLS,
            "One chat() with a client tool and executor: called once with name, input and call id; the next "
            "prompt has the output; callback sees call, output, text, done once; then it returns.",
        ),
        R(
            "SA-02",
            TOOLS,
            "No executor: the call shows in the stream, the turn ends, chat() returns, and a later chat() "
            "makes a valid prompt.",
        ),
        R(
            "SA-03",
            TOOLS,
            "An executor that raises at once, later, or by timeout: the part is output-error with the message, "
            "the model goes on, chat() returns normally.",
        ),
        R(
            "SA-06",
            TOOLS,
            "Aborted 100 ms into a 1 s executor call: the executor finishes, then the turn ends, no further "
            "model request, the call has a recorded state, chat() settles once as aborted.",
        ),
        R(
            "SA-07",
            TOOLS,
            "An RPC client tool named like a gated server tool runs at once without approval; gated server "
            "tools of the same turn still ask.",
        ),
        R(
            "SA-08",
            TOOLS,
            "Two client calls in one step and one in the next, finishing in another order: three executor "
            "calls, each output with its own call, one chat().",
        ),
        R(
            "SA-09",
            TOOLS,
            "Tools with code passed to chat() are ignored with a warning, and the child runs with its own.",
        ),
        R(
            "SA-10",
            DURABLE,
            "The model stalls inside chat(): the caller learns interrupted, neither done nor success, and the "
            "call settles; with recovery off it is on_error.",
            note="In the sub-agent area; moved to the issue that builds the watchdog.",
        ),
        R(
            "SA-11",
            TOOLS,
            "An error in the stream after two deltas: on_error once and status error, for chat() and for "
            "save_messages().",
        ),
        R(
            "SA-12",
            TOOLS,
            "Parent and child stream, each with a page: the child has its own name, its frames go to its own "
            "sockets only, and neither handles the other's protocol frames.",
        ),
    ),
    *table(
        "fault",
        "faults, workspace tools",
        R(
            "WS-01",
            WORKSPACE,
            "Reading past the end of a 5-line file tells the real line count; offset 5 gives line 5; an empty "
            "file, one too short and a missing one can be told apart.",
        ),
        R(
            "WS-02",
            WORKSPACE,
            "read of `/`, a folder, a missing file and an empty path: an error text each, and the turn goes on.",
        ),
        R(
            "WS-03",
            WORKSPACE,
            "PNG, PNG without extension, PDF and unknown bytes: metadata only in history; the model gets an "
            'image, a file or "unsupported binary"; over the inline limit an error text.',
        ),
        R(
            "WS-04",
            WORKSPACE,
            "`..`, doubled slashes, a drive letter, NUL and a path of 5,000 characters in every file tool: "
            "inside the workspace or a tool error, never a host file, one file under all spellings.",
        ),
        R(
            "WS-05",
            WORKSPACE,
            "Deleting `/a`, `/a%` or `/a_` removes that folder and what is under it, and no neighbour of a "
            "similar name.",
        ),
        R("WS-06", WORKSPACE, "Ten parallel writes into one new folder all succeed, and the folder exists once."),
        R(
            "WS-07",
            WORKSPACE,
            "Writing to `/`, to a folder or below a file, deleting `/` or a full folder without recursive: "
            "error text and nothing changed; deleting what is missing does no harm.",
        ),
        R(
            "WS-08",
            WORKSPACE,
            "Links made in bash: reading and writing go to the target, deleting removes the link, a loop fails "
            "fast, a link to a host path shows no host file.",
        ),
        R(
            "WS-09",
            WORKSPACE,
            "1,500 entries: pages without gap or repeat in a stable order; limits of 0 and 99,999 are "
            "validation errors.",
        ),
        R(
            "WS-10",
            WORKSPACE,
            "One tool name from each source, switched on one by one: the later source in the documented order "
            "wins; extension tools do not collide, having a prefix.",
            note="The base issue builds the merge and its test; each issue that brings a source extends it.",
        ),
        R(
            "WS-11",
            WORKSPACE,
            "active_tools of before_turn: a call outside it is an error result and does not run; extra tools "
            "last one turn; the loop goes on.",
            note="Built by the base issue: tools that before_turn adds can be called though active_tools does "
            "not list them.",
        ),
        R(
            "WS-12",
            WORKSPACE,
            "A read tool over operations that are sync, async, return None or raise: results shaped as the "
            "built-in's, and an exception is an error result.",
        ),
    ),
    *table(
        "fault",
        "faults, edit, grep, find, bash",
        R(
            "EG-02",
            WORKSPACE,
            "edit with empty old text: refused on a file that exists, which stays as it is; on a missing path "
            "it creates the file.",
        ),
        R(
            "EG-03",
            WORKSPACE,
            "Old text that occurs twice, also overlapping or only after folding blanks: an error that says so, "
            "and the bytes unchanged.",
        ),
        R(
            "EG-05",
            WORKSPACE,
            "Old text with a final newline that the file lacks: success with sensible bytes or an error that "
            "names the newline; `helpers` is not hit by `helper`.",
        ),
        R(
            "EG-06",
            WORKSPACE,
            "Loose matching over tabs, trailing blanks, emoji and CRLF changes the matched region to the "
            "character; two candidates are an error.",
        ),
        R(
            "EG-07",
            WORKSPACE,
            "A pattern that is no regular expression is an error text; the same text with fixedString searches.",
        ),
        R(
            "EG-09",
            WORKSPACE,
            "300 hits and a file of 2 MB: capped and marked truncated, the file named as skipped, case ignored "
            "by default, context within bounds, lines counted from 1.",
        ),
        R(
            "EG-11",
            WORKSPACE,
            "find with several segments: `2026/07/26.md`, `2026/07/*.md`, `/2026/**` and `**/26.md` find the "
            "file, a trailing `**` finds files too, `2026/*` does not cross a slash.",
        ),
        R(
            "EG-12",
            WORKSPACE,
            "Names with braces, blanks, brackets, plus signs and Unicode can be found; an unclosed bracket is "
            "literal, `[!a]` negates, and no regex error shows.",
        ),
        R(
            "EG-13",
            WORKSPACE,
            "A file that bash did not mount (2 MB) keeps its bytes under echo, rm -rf, mv and find -delete; it "
            "is in skippedFiles, the refusal is said, other files follow the script.",
        ),
        R(
            "EG-14",
            WORKSPACE,
            "1,200 files, limit 1,000, `rm -rf /*`: the 200 skipped are reported and still there, nothing is "
            "half applied, and the limit can be set.",
        ),
        R(
            "EG-15",
            WORKSPACE,
            "Only real changes are written back: echo changes nothing, empty folders follow, the same bytes "
            "are no update, no system path of the shell ever appears.",
        ),
        R(
            "EG-16",
            WORKSPACE,
            "Endless loops and growth bombs in shell, awk and braces, timeout 1 s: back within about 3 s with "
            "a non-zero exit and a note, output capped, memory bounded, earlier writes treated the same each "
            "time.",
        ),
        R(
            "EG-17",
            WORKSPACE,
            "curl, wget and /dev/tcp with default options reach no local listener; stderr has an error.",
        ),
        R(
            "EG-18",
            WORKSPACE,
            "Exit code, stdout and stderr come apart; writes before a failure stay; the cap is in bytes and "
            "never inside a visible character.",
        ),
        R(
            "EG-19",
            WORKSPACE,
            "Here-documents, quoted and not, two in a pipeline, and appending: the file has the body, a quoted "
            "body is literal, nothing is on stdout.",
        ),
        R(
            "EG-20",
            WORKSPACE,
            "ls of a glob and a loop over one print full paths; a glob without match stays literal, or as documented.",
        ),
        R(
            "EG-21",
            WORKSPACE,
            "`workspace_bash = False`: the tool is not offered and a call of it is an error result; the limits "
            "given as options hold.",
        ),
    ),
    *table(
        "fault",
        "faults, MCP",
        R(
            "MC-01",
            MCP,
            "After a restart the first turn lists the tools of a server that needs 800 ms; with one that hangs "
            "and a timeout of 1 s it starts without them after about 1 s.",
        ),
        R(
            "MC-02",
            MCP,
            "`include_mcp_tools = False`: not in the prompt; direct calls and code-mode calls work, and "
            "connections are restored.",
            note="The code-mode call comes with code mode.",
        ),
        R(
            "MC-04",
            MCP,
            "Tool names that providers refuse (slashes, 120 characters, another script, newlines, two that "
            "clean alike): usable under clean, unique names that stay over a restart; the server hears the "
            "originals.",
        ),
        R(
            "MC-05",
            MCP,
            "isError with text, isError with structured content only, output against its schema: the part is "
            "output-error, the model sees text or payload, the turn goes on.",
        ),
        R("MC-07", MCP, "A signed-in server is ready again after a restart without asking, and the auth link is gone."),
        R(
            "MC-08",
            MCP,
            "Adding a server again whose login is still open after a restart: authenticating with a usable "
            "absolute link, never ready.",
        ),
        R("MC-09", MCP, "Two restarts during a login: it finishes with the first link."),
        R(
            "MC-10",
            MCP,
            "404 for a stored session: one fresh session with its tools; if it is always 404, state failed and "
            "no loop.",
        ),
        R(
            "MC-11",
            MCP,
            "Five servers of which four hang: the agent answers at once after a restart, and the live server "
            "is usable.",
        ),
        R(
            "MC-12",
            MCP,
            "The tool list changes while connected: the next turn sees the new one; after a failed reconnect "
            "the tools are not offered.",
        ),
        R(
            "MC-13",
            MCP,
            "One server added three times, restarted and added again: one connection, one set of tools; "
            "removing it during a call ends the call with an error and takes the tools away.",
        ),
        R(
            "MC-14",
            MCP,
            "Two parallel calls answered in reverse order, two agents on one server: each gets its own answer.",
        ),
        R(
            "MC-15",
            MCP,
            "Without a handler elicitation is not declared; a server that asks anyway is refused cleanly, and "
            "the call ends with an error.",
        ),
    ),
    *table(
        "fault",
        "faults, code mode",
        R(
            "CM-01",
            LATER,
            "Code calls a(), gated pay(), b(): a once, pay once with its first arguments after the approval, b "
            "once; the output in the transcript is replaced, and chat goes on by itself.",
        ),
        R("CM-02", LATER, "A gate given as a function always asks inside the sandbox."),
        R(
            "CM-03",
            LATER,
            "Reject with a reason: output says rejected and why, the tool never runs, the model is told; a "
            "later approve of that id does nothing and returns an error.",
        ),
        R(
            "CM-05",
            LATER,
            "Code that takes another branch, or other arguments, on resume: the run ends in an error that "
            "names divergence, the gated call does not run, results are not mixed up.",
        ),
        R(
            "CM-07",
            LATER,
            "Killed while an approved call runs: it is tried again or reported, as documented, and never taken "
            "as done with an empty value.",
            note='Decision 12: again only if the tool is marked idempotent, else "outcome unknown" as data.',
        ),
        R(
            "CM-08",
            LATER,
            "Client tools are not in the sandbox's list; calling one is an error that names what there is.",
        ),
        R(
            "CM-09",
            LATER,
            "Wrong types, missing fields and positional arguments are errors the code can catch; the tool does "
            "not run.",
        ),
        R(
            "CM-10",
            LATER,
            "Names that become equal or are reserved (codemode, console, Promise, __proto__) are refused when "
            "building, by name, or get unique aliases.",
        ),
        R(
            "CM-11",
            LATER,
            "Paused, restarted, approved over RPC without a page: full arguments listed, the run completes, "
            "history shows result and answer.",
        ),
        R(
            "CM-12",
            LATER,
            "An argument of 200 KB: pending_executions has all of it, the preview in the transcript is bounded.",
        ),
        R(
            "CM-13",
            LATER,
            "Two paused runs approved in the other order, one pausing again: the right part is updated each time.",
        ),
        R(
            "CM-14",
            LATER,
            "The paused part was compacted away: the outcome reaches the model as a note where a strict "
            "provider takes it.",
        ),
        R(
            "CM-15",
            LATER,
            "Every way models write code (fenced, exported, as a named function, ending in an expression or a "
            "return, with backticks in strings) gives the plain version's value, and strings are untouched.",
        ),
        R(
            "CM-16",
            LATER,
            "Endless loop, network, a result of 5 MB, 10,000 tool calls: stopped in time, unreachable, cut "
            "with a mark, bounded; the server lives.",
        ),
        R(
            "CM-17",
            LATER,
            "MCP results and bytes inside the sandbox: plain values, isError as an exception, identical bytes, "
            "all arguments arrive.",
        ),
        R(
            "CM-18",
            LATER,
            "Expiring after 24 h: the old pause is rejected, the run stuck in running is an error, the fresh "
            "one stays; approving the old id is an error that settles its card.",
        ),
    ),
    *table(
        "fault",
        "faults, browser",
        R(
            "BR-01",
            LATER,
            "A one-shot session is closed after success, error, timeout, cancel and reject; kept during a "
            "pause; closing twice does no harm.",
        ),
        R(
            "BR-02",
            LATER,
            "A session handle works after a pause by attaching again; one swept in between fails loudly and "
            "opens no fresh browser.",
        ),
        R(
            "BR-03",
            LATER,
            "A screenshot of 3 MB and 5,000 links: the model sees a short mark, UI and audit keep the value, "
            "lists stay lists, trimmed.",
        ),
        R(
            "BR-04",
            LATER,
            "A browser that ignores a command while events keep coming: a tool error after the timeout, and "
            "the turn goes on.",
        ),
        R("BR-05", LATER, "Secrets in the CDP URL are in no error text, history or frame."),
        R(
            "BR-06",
            LATER,
            "A schema given as text, a command without session, an event sent as a command: an error that says "
            "what to do.",
        ),
    ),
    *table(
        "fault",
        "faults, extensions",
        R(
            "EX-01",
            LATER,
            "Extension `my-math 2` with tool `add` is my_math_2_add; a pair that collides is refused or kept "
            "apart; an empty name is refused.",
        ),
        R("EX-02", LATER, "Without the network permission fetch, import by URL and WebSocket reach no local listener."),
        R(
            "EX-03",
            LATER,
            "An extension loaded by the model works in the next turn and after a restart; unloaded, its call "
            "is an error result; loading twice is refused; list_extensions agrees.",
        ),
        R(
            "EX-04",
            LATER,
            "Syntax error, error at load, in a tool or a hook, a tool that never returns, or returns a "
            "function: error results, the turn goes on, the other extensions work.",
        ),
        R(
            "EX-05",
            LATER,
            "A context block of an extension has the prefixed name, refuses or cuts a write over its limit and "
            "says so, and goes at unload.",
        ),
        R(
            "EX-06",
            LATER,
            "Host-bridge calls without their permission, for another label, with `..` or prototype names are "
            "denied; granted ones work in scope only.",
        ),
    ),
    *table(
        "fault",
        "faults, skills",
        R(
            "SK-01",
            SESSIONS,
            "A name in two sources, a source that raises, one with broken front matter: the first wins with a "
            "warning, the others load, the broken one is skipped.",
        ),
        R(
            "SK-03",
            SESSIONS,
            "run_skill_script: absent without a runner; unknown extensions and resources that are no scripts "
            "are refused; a failing script is a result.",
        ),
    ),
    *table(
        "fault",
        "faults, sessions and context",
        R(
            "SE-03",
            SESSIONS,
            "Two branches compacted in the same second: each reads its own summary, the same on every run.",
        ),
        R(
            "SE-05",
            SESSIONS,
            "Regenerate the last and a middle answer, restart in mid-stream of one: the prompt ends at that "
            "user message without the old answer and without a hint to continue; old answers are siblings, "
            "recovered text too.",
        ),
        R(
            "SE-06",
            SESSIONS,
            "Regenerate twice, then go on: the active path is user, newest answer, next user; the others are "
            "reachable; nothing twice in get-messages.",
        ),
        R(
            "SE-07",
            SESSIONS,
            "Few messages, 40 tool steps, threshold 2,000 tokens: smaller than that before the next request, "
            "or an event that tells why; the latest user message stays.",
        ),
        R(
            "SE-08",
            SESSIONS,
            "A second compaction after a restart is given the first summary once, without a doubled prefix.",
        ),
        R(
            "SE-09",
            SESSIONS,
            "A parent id of another agent, two agents compacting at once: refused or a safe fallback; no text "
            "crosses chats.",
        ),
        R(
            "SE-10",
            SESSIONS,
            "set_context on a read-only block, over 100 tokens, an unknown label, `__proto__`, empty text: "
            "refused as results, limit enforced, empty stays empty, values survive a restart.",
        ),
        R(
            "SE-11",
            SESSIONS,
            "The provider says too long in step 7: with reactive handling compact, retry, one clean answer and "
            "no half message; off or without gain one clear error.",
            note="Overflow handling is built by the durable-turns issue, compaction by this one.",
        ),
    ),
    *table(
        "fault",
        "faults, model and provider quirks",
        R("MQ-01", BASE, "A call with empty argument text runs with `{}`."),
        R(
            "MQ-02",
            BASE,
            'Stored inputs of a wrong kind ("", null, list, text, JSON text, number): the prompt has objects '
            "only, and the history is repaired once.",
        ),
        R("MQ-03", BASE, "Id and name repeated in each of five deltas: one call, its id once, the arguments joined."),
        R(
            "MQ-04",
            BASE,
            "Later deltas with an empty id and name, two calls interleaved by index: two calls with full "
            "arguments and the right names.",
        ),
        R(
            "MQ-05",
            BASE,
            "No call ids, in two turns: ids are made up and unique over turns, a RESULT finds its call, the "
            "history pairs rightly.",
            note="The RESULT needs client tools and is to be added to the test with them.",
        ),
        R(
            "MQ-06",
            BASE,
            "Two calls of one step under one id: both run or the second gets a fresh id; two outputs, each "
            "with its own call.",
        ),
        R(
            "MQ-07",
            BASE,
            "Unknown tool, cut arguments, arguments against the schema: three error results, none executed, "
            "another step, every id answered.",
        ),
        R(
            "MQ-08",
            BASE,
            "The stream ends without a finish, after text or inside arguments: done, text stored, the half "
            "call not run and in a definite state.",
        ),
        R(
            "MQ-09",
            BASE,
            "A last chunk that repeats a complete call with empty arguments: one call, one execution, for "
            "server and client tools.",
            note="Calls are put right before it is known whose tool they are of.",
        ),
        R(
            "MQ-11",
            BASE,
            "An empty list of calls, empty deltas, only reasoning, nothing: one model request, done, no empty "
            "text parts stored, no loop.",
        ),
        R(
            "MQ-12",
            BASE,
            "A tool called for ever: a normal end at max_steps, and the next request works; a client tool "
            "continued for ever is bounded or stopped by a cancel.",
            note="The second half needs client tools and is to be added to the test with them.",
        ),
        R(
            "MQ-13",
            TOOLS,
            "An output for a call of the previous assistant message updates it in storage and tabs; an output "
            "for an unknown id is ignored.",
        ),
        R(
            "MQ-14",
            BASE,
            "A tool whose execute gives an async generator, awaited or not: the last value is the output, "
            "progress is preliminary, hooks fire once, a cancel closes the generator.",
            note="Of one that was awaited the progress is not shown: engine statement 37.",
        ),
        R(
            "MQ-15",
            DURABLE,
            "Silence longer than the watchdog before the first chunk or after text leads to recovery or a "
            "clear error; a slow tool with a per-turn override is not killed.",
        ),
        R(
            "MQ-16",
            BASE,
            "The text result of a programmatic turn separates the text before and after a tool call by white "
            "space; inside one run of text deltas are joined as they are.",
        ),
    ),
    *table(
        "fault",
        "faults, security",
        R(
            "SC-02",
            BASE,
            "JSON that is no object, no JSON, bytes, known types with fields missing or of a wrong kind, 1 MB "
            'of nesting: no crash, bad ones ignored or answered, a request with an id ended, "yes" is no '
            "approval, good requests work on both sockets.",
        ),
        R(
            "SC-03",
            BASE,
            "Request bodies missing, empty, not JSON, without messages or with bad members: each id is closed "
            "with error and done, the agent is idle.",
            note="Decision 10: an error frame for the id.",
        ),
        R(
            "SC-04",
            BASE,
            "A frame of 50 MB, 5,000 messages, 1,000 tool schemas, a schema 500 deep, while another socket "
            "streams: refused or handled within bounds, the stream unaffected, memory returned.",
            note="Decision 16 sets the frame cap.",
        ),
        R(
            "SC-06",
            BASE,
            "Names with slashes, `..`, percent codes, NUL or other case, unknown classes, another parent's "
            "child: each name its own store, the guard holds for HTTP and WebSocket, errors say nothing "
            "internal, no file leaves the data folder.",
        ),
        R(
            "SC-07",
            BASE,
            "RPC to private, inherited or constructor names, state from a read-only connection, null "
            "arguments: refused with an error answer; a declared method works.",
            divergence="A frame with null arguments is no call and gets no reply, as protocol statement 35 has it; the "
            "application's `on_message` hears it. All else holds.",
        ),
        R(
            "SC-08",
            MCP,
            "Texts from MCP servers and skills with control characters, ANSI, HTML, 1 MB, or lines that look "
            "like frames: cleaned and bounded, no HTML runs on a served page, frames stay valid JSON.",
            note="In the security area; moved to the issue that brings the outside texts.",
        ),
        R(
            "SC-09",
            BASE,
            "Posted history with forged assistant text, tool output, system or tool roles, another's id, "
            "10,000 parts: stored server messages keep their content; such roles are refused or neutral; "
            "unknown ids as documented.",
            note="Decisions 8 and 9: only user messages can be edited, as a new sibling; assistant ids are the "
            "server's.",
        ),
        R(
            "SC-10",
            MCP,
            "The OAuth result page escapes HTML and refuses a guessed, used or foreign state; state values are "
            "not logged, and a wrong callback does not destroy a login.",
            note="In the security area; moved to the issue that builds OAuth.",
        ),
        R(
            "SC-11",
            TOOLS,
            "A read-only socket sends request, result, approval, clear and cancel: the application's hook can "
            "refuse each, refused ones change nothing, the viewer still sees the stream.",
            note="In the security area; moved to the issue that builds results and approvals.",
        ),
    ),
)
