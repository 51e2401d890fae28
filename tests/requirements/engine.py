"""The engine, §12 of its reference: turns, hooks, tools, approvals, recovery, sessions, skills, MCP."""

from typing import Final

from tests.requirements.owners import BASE, DEFERRED, DURABLE, LATER, MCP, SESSIONS, SKELETON, TOOLS, WORKSPACE
from tests.requirements.rows import R, Requirement, table

__all__ = ["ROWS"]

ROWS: Final[tuple[Requirement, ...]] = (
    *table(
        "engine",
        "engine §12, turn queue and admission",
        R("1", SKELETON, "Queued turns run one at a time, first in first out."),
        R("2", SKELETON, "A turn queued before a reset is reported stale, and its function is not called."),
        R("3", SKELETON, "A reset lets the running function finish and skips those that wait."),
        R("4", SKELETON, "An exception in a turn goes to its caller, and the queue runs on."),
        R("5", TOOLS, "The queue counts per generation, and the running turn is in the count."),
        R("6", BASE, "Inside a turn a blocking admission raises, while `submit` mode and `add_messages` may be used."),
        R("7", BASE, "A second `run_turn` in wait mode, not nested, queues behind the running turn."),
        R(
            "8",
            BASE,
            "Every turn emits one start and one finish event, in that order, and neither names a channel.",
            note="Channels are deferred (decision 19), so no event could name one.",
        ),
        R(
            "9",
            BASE,
            '`run_turn` in wait mode with `""` or `[]` returns status `skipped`, without events and without inference.',
        ),
        R("10", BASE, "`save_messages([])` runs a turn on the history there is, unlike `run_turn`."),
        R(
            "11",
            BASE,
            "`run_turn` in stream mode with empty static input calls on_start and on_done without inference; "
            "if a function turns out to return nothing, the model runs all the same.",
        ),
        R(
            "12",
            BASE,
            "Combinations of mode, input, continuation and callback that do not fit raise before any work is done.",
            note="There is no `mode` until there are submissions: a callback makes a streamed turn.",
        ),
        R("13", BASE, "With anything but an assistant message at the end, a continuation is skipped."),
        R("14", DURABLE, "A submission's turn events come with its run, not with its acceptance."),
    ),
    *table(
        "engine",
        "engine §12, programmatic turns, abort, messages",
        R("15", BASE, "The empty string is a message for `chat`: the model runs on it."),
        R(
            "16",
            BASE,
            "`chat()` ignores a `tools` option.",
            note="With a warning (fault SA-09).",
        ),
        R(
            "17",
            BASE,
            "`chat()` of a sub-agent streams its chunks to the callback and to the browsers connected to it.",
        ),
        R(
            "18",
            BASE,
            "An abort stores the partial assistant message and does not call on_done; the agent stays usable.",
        ),
        R("19", BASE, "The request id handed to on_start cancels the turn from another call."),
        R(
            "20",
            BASE,
            "`save_messages` with a signal aborted beforehand or in mid-stream reports `aborted`; an abort "
            "that comes late changes nothing, and no controller is left over.",
        ),
        R("21", BASE, "`save_messages` given a function calls it with the transcript as it is when the turn starts."),
        R(
            "22",
            BASE,
            "`add_messages` starts no turn: it is idempotent by id, chains a list, can upsert without moving "
            "the message to another parent, raises on an unknown explicit parent, does nothing with an empty "
            "list.",
        ),
        R("23", BASE, "`add_messages` called by a running tool stores during the turn."),
        R(
            "24",
            BASE,
            "`get_messages` returns a copy; writes through the session are seen by it; an update of a message "
            "that is not loaded does not add it.",
        ),
        R("25", BASE, "`clear_messages` called in code is broadcast to clients."),
        R(
            "26",
            BASE,
            "`continue_last_turn` sets `continuation` to true in the hooks and takes a body and a signal.",
            note="Decision 2: it extends the assistant message.",
        ),
        R(
            "27",
            BASE,
            "Values of `configure` survive a restart and can be overwritten; `get_config` is None when unset, "
            "and both work inside `configure_session`.",
            note="Proven in `on_start`; `configure_session` comes with the sessions.",
        ),
        R("28", BASE, "After an eviction the transcript is loaded again without running a turn."),
    ),
    *table(
        "engine",
        "engine §12, loop and hooks",
        R("29", BASE, "`before_turn` fires on every way into a turn, with the assembled system text and tools."),
        R(
            "30",
            BASE,
            "A turn config's max_steps, active_tools, instructions, call settings, output, transforms and tool "
            "repair hold for that turn.",
            divergence="`output` and transforms are not there: they reach into the AI SDK's own loop. A structured "
            "answer is a tool with `stop_when`, and `on_chunk` hears the stream without changing it. All else holds.",
        ),
        R("31", BASE, "`before_turn` is given the original system text each time, whatever it returned before."),
        R("32", BASE, "`max_steps` ends the loop, together with the user's own stop conditions: whichever is first."),
        R("33", BASE, "`before_step` runs before each step with the steps so far and may change the model."),
        R(
            "34",
            BASE,
            "`before_tool_call` that returns nothing or allows runs execute once; allowing may bring other input.",
        ),
        R(
            "35",
            BASE,
            "Blocking gives the model the reason or a default text, substituting gives it the output; execute "
            "is called in neither case.",
        ),
        R("36", BASE, "`before_tool_call` that raises makes a tool error, which `after_tool_call` sees."),
        R(
            "37",
            BASE,
            "An async-generator tool sends preliminary outputs; an iterable that is awaited or synchronous "
            "gives its last value only; a scalar sends no preliminary chunk.",
        ),
        R("38", LATER, "Extensions that observe get tool, step and chunk events."),
        R(
            "39",
            BASE,
            "Reasoning is sent by default; a switch on the class and one for the turn work over WebSocket and "
            "over RPC.",
        ),
        R("40", BASE, "An agent without a model reports an error and does not hang."),
        R(
            "41",
            BASE,
            "`on_chat_response` fires once per turn, be it completed, errored, aborted or empty; the next turn "
            "waits for an async hook, and fast turns lose none.",
        ),
        R(
            "42",
            BASE,
            "An error in the model's stream ends the turn with status `error`, keeps the partial and emits "
            "`chat:request:failed`, over WebSocket and over RPC.",
        ),
        R(
            "43",
            BASE,
            "An on_error callback that raises again reaches the caller and does not fire the response hook a "
            "second time.",
        ),
        R(
            "44",
            DURABLE,
            "A response hook still owed when the process died runs at the next start with `recovered` true.",
        ),
    ),
    *table(
        "engine",
        "engine §12, tools and merging",
        R("45", TOOLS, "Client tools are merged last and hide server tools of the same name for that turn."),
        R(
            "46",
            SESSIONS,
            "Session tools are there from the moment that a block can be written, also for one added at run time.",
        ),
        R(
            "47",
            LATER,
            "Names of extension tools are prefixed and cleaned; loading twice is refused; unloading removes "
            "them; restoring twice changes nothing.",
        ),
        R("48", MCP, "MCP tools are merged unless `include_mcp_tools` is false; direct access to MCP works then too."),
        R(
            "49",
            WORKSPACE,
            "read, write, edit, list, find and grep act as documented, with ambiguous and fuzzy edits and the "
            "1 MiB limit of grep.",
        ),
        R(
            "50",
            WORKSPACE,
            "bash writes back created, changed and deleted files and empty folders, never the shell's own "
            "system paths, never over skipped files; non-zero exits and timeouts are structured results.",
        ),
        R("51", WORKSPACE, "The fetch tools refuse what is not on the allow list and name each failure by a code."),
    ),
    *table(
        "engine",
        "engine §12, messages: reconcile, sanitise, repair, size",
        R("52", BASE, "The client's optimistic copy of an assistant message falls into the server's own."),
        R("53", BASE, "A stored tool output wins over a pending client copy of the same message and call."),
        R(
            "54",
            BASE,
            "Two assistants with the same text map to two stored messages; a message with tool calls is never "
            "matched by its text.",
        ),
        R(
            "55",
            BASE,
            "Calls left open are settled as errors and stored before the next request to the provider; errored "
            "and denied parts are not touched.",
            note="Decision 6: on a new user message this takes in client calls and approvals that are still open.",
        ),
        R(
            "56",
            BASE,
            "The input of a stored call becomes an object: a JSON string is parsed; arrays and missing values "
            "become `{}`.",
        ),
        R(
            "57",
            DURABLE,
            "`repair_interrupted_tool_part` may turn an open call into other parts and is not asked about "
            "settled ones.",
        ),
        R(
            "58",
            BASE,
            "OpenAI item ids and encrypted reasoning are taken out; an empty reasoning part goes unless it has "
            "metadata.",
            divergence="Taken out are `itemId` and `reasoningEncryptedContent`, as the original's SDK names them. "
            "What the bridge to providers keeps under names of its own (`id`, `signature`, `details`) stays: without "
            "it a reasoning model could not be sent its reasoning back.",
        ),
        R(
            "59",
            BASE,
            "Large tool outputs and texts are stored whole and cut only in what the model sees and in submission rows.",
            note="The older original cut them on write.",
        ),
        R(
            "60",
            BASE,
            "Metadata keys reserved for the server (`channel`, `turnMetadata`) are removed from what clients post.",
        ),
        R(
            "61",
            SESSIONS,
            "Large media of old messages moves to files and leaves a marker; small media and other URLs stay, "
            "a second pass does nothing, and growth triggers a pass.",
        ),
        R(
            "62",
            BASE,
            "A transcript too large to load opens as a recent window; chat works, and the windowed event is "
            "emitted when that changes, not each time.",
        ),
        R("63", SKELETON, "A new turn's first chunk has the id that the stored message will have."),
        R(
            "64",
            BASE,
            "Regenerating makes a sibling, keeps earlier history and fires the response hook; with an empty "
            "list it is an ordinary submit.",
        ),
        R("65", TOOLS, "Results of client tools from earlier turns survive later turns."),
    ),
    *table(
        "engine",
        "engine §12, approvals",
        R(
            "66",
            TOOLS,
            "Approving makes `approval-responded`, denying `output-denied`, with the approval's data kept; an "
            "unknown or settled id changes nothing.",
            note="Decision 5: it starts nothing either, whatever `autoContinue` says.",
        ),
        R(
            "67",
            TOOLS,
            "After an approval with autoContinue the continuation runs the tool, streams its output and stores "
            "it on the original part.",
        ),
        R("68", TOOLS, "Transcript repair leaves the approved call alone on that continuation."),
        R("69", TOOLS, "A denied server tool never runs and stays denied; the continuation may still run."),
        R("70", TOOLS, "An exception of an approved tool is stored as a terminal error."),
        R("71", TOOLS, "While a sibling waits for its approval the continuation does not start."),
        R(
            "72",
            TOOLS,
            "`before_tool_call` is the outer gate after an approval; when both allow, execute runs once.",
            note="Decision 11: a hook that wants other arguments after the approval is refused with an error "
            "that the model sees.",
        ),
        R(
            "73",
            TOOLS,
            "An action's permission is checked before it is put to the user and again after the approval; "
            "input rewritten after the approval does not run.",
            divergence="Actions and their permissions are deferred (decision 19). The other half holds for "
            "every tool: only the stored arguments run (decision 11).",
        ),
        R(
            "74",
            TOOLS,
            "Results are accepted from `approval-requested` and from `approval-responded`.",
            note="Decision 13: a client tool that needs approval gets its output this way.",
        ),
        R("75", TOOLS, "An approval is not lost if it comes before the assistant message has been stored."),
    ),
    *table(
        "engine",
        "engine §12, client tools and auto-continue",
        R(
            "76",
            TOOLS,
            "A result makes the part output-available; an error state takes the given or the default text; "
            "settled parts refuse.",
        ),
        R("77", TOOLS, "One continuation runs if autoContinue asked for it, and none otherwise."),
        R("78", TOOLS, "One continuation for parallel calls: after all their results, in any order."),
        R("79", TOOLS, "Results at the same time never overwrite each other."),
        R("80", TOOLS, "A result over WebSocket in mid-stream is applied."),
        R(
            "81",
            TOOLS,
            "A call that the same stream emits later is a sibling, and the continuation waits for it.",
            note="Decision 4: the continuation is created no earlier than the turn's close.",
        ),
        R("82", TOOLS, "A batch answered in full while the turn streams continues when the stream ends."),
        R(
            "83",
            TOOLS,
            "An error result without autoContinue counts as the missing answer of a batch in which another "
            "asked to continue; alone it continues nothing.",
        ),
        R("84", TOOLS, "A missing sibling keeps neither the process nor the agent awake."),
        R("85", TOOLS, "`wait_until_stable` does not call the agent stable while a continuation is armed."),
        R(
            "86",
            TOOLS,
            "A pending continuation lost in an eviction comes back with the next result that opts in; for a "
            "batch completed by an error the gap is documented.",
            divergence="Decisions 4 and 5: the continuation is a stored row, made in the transaction of the "
            "last answer, so an eviction loses nothing and there is no gap; a repeated result starts nothing.",
        ),
        R(
            "87",
            TOOLS,
            "Re-scheduling does not change the id of the pending request, a result after the start is put off, "
            "and no drain is entered twice.",
            divergence="Decisions 3 and 4: one transaction creates the continuation once all calls of the step "
            "are settled; there is nothing to re-arm, defer or drain, and later results change nothing.",
        ),
        R("88", TOOLS, "The continuation runs although the socket that set it off is closed."),
        R(
            "89",
            TOOLS,
            "A probe while a continuation is pending is held and not told none; after its end the answer is "
            "none, `idle`, with the probe's id.",
        ),
        R("90", TOOLS, "Other tabs get the chunks of the continuation and `message_updated`."),
        R(
            "91",
            TOOLS,
            "The model gets the request's schemas; a tool result can replace them; a clear and an explicit "
            "empty list remove them.",
        ),
        R("92", BASE, "Hooks can read the custom body; a request without one clears it."),
        R(
            "93",
            TOOLS,
            "With an executor a client call makes its round trip inside one `chat()`: in parallel, over "
            "several steps, and an exception becomes a tool error.",
        ),
        R(
            "94",
            TOOLS,
            "Client tools given to `chat()` are never stored, and an interrupted call of one does not count as "
            "waiting for a person.",
        ),
        R("95", TOOLS, "No executor: the call is left open at the end of the turn."),
    ),
    *table(
        "engine",
        "engine §12, concurrency",
        R("96", TOOLS, "queue: every submit is answered, in order."),
        R(
            "97",
            TOOLS,
            "latest: of the overlapping submits the newest runs; hooks fire for the turns that ran.",
            note="Decision 7: superseded messages stay stored and shown and are left out of every model prompt.",
        ),
        R("98", TOOLS, "merge: all user messages stay, and one turn answers the overlapping ones."),
        R(
            "99",
            TOOLS,
            "drop: an overlapping submit is refused and not stored; the hook fires for the accepted turn only.",
        ),
        R("100", TOOLS, "debounce: the turn waits for quiet, and a reset frees all who wait."),
        R("101", TOOLS, "A regenerate is exempt from every strategy."),
        R(
            "102",
            TOOLS,
            "Submits that are queued when a clear comes are skipped; the first one after it meets no overlap.",
        ),
        R(
            "103",
            TOOLS,
            "A submit accepted and not yet queued counts as overlap; its release is idempotent and void after a reset.",
        ),
    ),
    *table(
        "engine",
        "engine §12, resume and broadcast",
        R(
            "104",
            SKELETON,
            "A new connection gets the transcript when idle, only the resume notice while a turn streams, and "
            "the transcript again afterwards.",
        ),
        R(
            "105",
            BASE,
            "A stream that ends before the ack closes cleanly; who comes late learns of a terminal error in "
            "the handshake, until a clear or the next submit removes it.",
        ),
        R("106", BASE, "A failed stream replays its partial content and then the error."),
        R(
            "107",
            BASE,
            "A turn accepted and not yet streaming parks clients that reconnect; if it is skipped they are "
            "kept for its successor.",
        ),
        R("108", BASE, "An ack for another id is ignored; repeated requests get the same notice again."),
    ),
    *table(
        "engine",
        "engine §12, recovery",
        R(
            "109",
            DURABLE,
            "A finished turn leaves no recovery record, and turns one after the other leave none to each other.",
        ),
        R(
            "110",
            DURABLE,
            "Interrupted before streaming, a turn is retried without a second user message; interrupted later, "
            "it continues with the stored body and tools.",
        ),
        R(
            "111",
            DURABLE,
            "An incident is the same whether retried or continued; progress sets attempts back to 1, and "
            "interruptions inside the debounce window cost none.",
        ),
        R(
            "112",
            DURABLE,
            "Each cap ends recovery: attempts, time without progress, work budget, a predicate that says no, "
            "interrupted runs; the documented order decides which one is named.",
        ),
        R(
            "113",
            DURABLE,
            "Progress means durably flushed chunks: compaction and re-stored messages do not change it; "
            "forwarding a child's stream counts as progress, a child that says nothing does not.",
        ),
        R(
            "114",
            DURABLE,
            "A turn that waits for a client tool or an approval is parked, never sealed, and spends no budget, "
            "right after a cold start too.",
        ),
        R(
            "115",
            DURABLE,
            "A server tool's open call from a dead process is not waiting for anyone: it is repaired, and the "
            "turn goes on or is sealed.",
        ),
        R("116", DURABLE, "`persist: false` drops a partial that is only text, never settled tool results."),
        R(
            "117",
            DURABLE,
            "`continue: false` stores the partial, schedules no recovery, and whoever reconnects is shown a "
            "terminal error.",
        ),
        R(
            "118",
            DURABLE,
            "A continuation that was overtaken ends unnoticed; if it was a new user turn that overtook it, the "
            "submission is marked skipped.",
        ),
        R(
            "119",
            DURABLE,
            "Exhaustion stores the partial, calls on_exhausted once and delivers the terminal message, even if "
            "that hook raises or the incident record is gone.",
        ),
        R(
            "120",
            DURABLE,
            "Passing faults of the platform put the recovery off and run it again; application errors end the turn.",
        ),
        R(
            "121",
            DURABLE,
            "A stall takes the same way; slow and steady streams do not; the per-turn override works with the "
            "class setting off; on_interrupted replaces on_done and on_error.",
        ),
        R("122", DURABLE, "After a crash no tool runs again whose result was there before."),
        R(
            "123",
            DURABLE,
            "Clients are told of recovering when it begins, when they connect meanwhile, and when it is over.",
        ),
        R(
            "124",
            DEFERRED,
            "A channel's instructions and tool filter apply again on a recovered turn.",
            reason="Channels are deferred (decision 19).",
        ),
        R(
            "125",
            DURABLE,
            "Reactive overflow compacts and retries over RPC, programmatic and WebSocket turns; no orphan "
            "assistant remains, it ends at the limit of retries or when nothing shrinks, and it obeys an "
            "abort.",
        ),
        R(
            "126",
            DURABLE,
            "The proactive guard compacts in mid-turn and may do so twice; a compaction that changes nothing "
            "uses its slot too.",
        ),
        R(
            "127",
            DURABLE,
            "A failing start of scheduled tasks or of loading does not lock the agent out, and it is reported.",
        ),
    ),
    *table(
        "engine",
        "engine §12, session, context, skills, MCP",
        R(
            "128",
            SESSIONS,
            "Writes leave the frozen prompt alone, a refresh renews it, a restart keeps it; an empty prompt is "
            "not the same as none.",
        ),
        R(
            "129",
            SESSIONS,
            "`set_context` writes and appends, refuses read-only blocks, answers with an error text over the "
            "token limit; keyed blocks use the title or a generated key.",
        ),
        R("130", SESSIONS, "`search_context` is offered only if a block is searchable; without hits it says so."),
        R(
            "131",
            SESSIONS,
            "`load_context` gives the content or not-found; unloading replaces the stored output, and "
            "unloading what is not loaded says so.",
        ),
        R(
            "132",
            SESSIONS,
            "Compaction stores an overlay that starts from the earliest one there is, on its branch only; a "
            "null result does nothing, automatic needs both threshold and function, failures are not fatal.",
        ),
        R(
            "133",
            SESSIONS,
            "Skills: the first source wins, a failing source stands alone, the script tool needs a runner, "
            "path and kind are checked.",
        ),
        R(
            "134",
            SESSIONS,
            "The script runner demands a default export, bounds its artefacts, and honours workspace access "
            "levels, timeouts and shell exit codes.",
            note="This issue leaves the seam and its clear error; the runner itself comes with the sandbox.",
        ),
        R(
            "135",
            MCP,
            "Server ids are normalised the same way twice; waiting settles or times out without raising; "
            "elicitation is offered as handlers are, after a restart too.",
        ),
    ),
    *table(
        "engine",
        "engine §12, submissions, schedules, agents as tools, pauses, platform",
        R(
            "136",
            DURABLE,
            "Submissions are accepted fast, idempotent by id and key (also when the first calls race), FIFO; "
            "cancelled before their slot they append nothing; final states stay, restart follows the rules, "
            "list and delete have limits.",
        ),
        R(
            "137",
            DURABLE,
            "Scheduled tasks: reconciling leaves others alone, the next occurrence is always armed, "
            "submissions are idempotent, DST and lateness follow the rules, sub-agents have them too.",
        ),
        R(
            "138",
            LATER,
            "A paused code-mode run through all its ways: approved, rejected with a reason, paused a second "
            "time, approved twice, expired, restarted, beside others.",
        ),
        R(
            "139",
            DEFERRED,
            "Durable actions run once on approval, one winner under races, swept by TTL, across recovery "
            "incidents, without a connection.",
            reason="Actions are deferred (decision 19).",
        ),
        R(
            "140",
            DURABLE,
            "Agents as tools: summary or structured output, abort, re-attach, parallel recovery, cap on "
            "concurrency, nesting.",
        ),
        R(
            "141",
            BASE,
            "A state change is validated, stored, broadcast, then handed to the hook, whose errors do no harm; "
            "corrupted state falls back to the initial one.",
        ),
        R(
            "142",
            BASE,
            "Only marked methods can be called; streaming helpers close by themselves when the method raises; "
            "closed sockets are ignored.",
        ),
        R(
            "143",
            BASE,
            "Schedules and queue: idempotency rules, no overlap with itself, a failing item does not block the "
            "others, rows survive a restart of the platform.",
        ),
        R(
            "144",
            BASE,
            "A sub-agent has its own storage: abort keeps it, delete wipes it; its schedules are scoped to it "
            "and cleaned up.",
        ),
    ),
)
