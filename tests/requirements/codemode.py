"""Code mode, §13 of its reference: execute, browser, extensions and skill scripts."""

from typing import Final

from tests.requirements.owners import LATER, SESSIONS
from tests.requirements.rows import R, Requirement, table

__all__ = ["ROWS"]

ROWS: Final[tuple[Requirement, ...]] = (
    *table(
        "codemode",
        "codemode §13, executor and normalisation",
        R(
            "1",
            LATER,
            "The value of simple code is the result; what goes into calls and comes out of them is unchanged.",
        ),
        R(
            "2",
            LATER,
            "Uint8Array and ArrayBuffer survive as argument and result; a view carries the bytes it shows and "
            "no others.",
        ),
        R(
            "3",
            LATER,
            "A tool that raises is an exception in the code; uncaught it is an error outcome and never an "
            "exception on the host.",
        ),
        R("4", LATER, "Calls made at once with Promise.all all resolve."),
        R("5", LATER, "Console output is captured, with a level prefix on warnings and errors."),
        R("6", LATER, "Code has no fetch unless it was allowed."),
        R("7", LATER, "Extra modules can be imported; the harness's own module cannot be replaced."),
        R(
            "8",
            LATER,
            "A provider name that is reserved, not an identifier or used twice is an error outcome that says so.",
        ),
        R(
            "9",
            LATER,
            "Tool names with dashes or dots are called by their cleaned name; two that come out the same are refused.",
        ),
        R("10", LATER, "A prelude function goes before dispatch; replaying a step does not call its function."),
        R("11", LATER, "The timeout ends an await without end, and also a busy loop, which the host kills."),
        R(
            "12",
            LATER,
            "A call nobody awaited does not keep the sandbox alive after the return, and its effect still happens.",
        ),
        R(
            "13",
            LATER,
            "Empty input does nothing; an arrow function passes unchanged; a fence with any listed tag is "
            "stripped, a partial one kept.",
        ),
        R("14", LATER, "A trailing expression is returned; declarations and loops return nothing."),
        R(
            "15",
            LATER,
            "export default works with an arrow, an expression, an anonymous function and an anonymous class.",
        ),
        R("16", LATER, "A single named function is called, but not where there are other statements."),
        R("17", LATER, "A top-level return and syntax errors are wrapped and not rejected before running."),
        R("18", LATER, "A syntax error that shows only in the sandbox is an error outcome that names the problem."),
    ),
    *table(
        "codemode",
        "codemode §13, types and names",
        R(
            "19",
            LATER,
            "Names are cleaned: dashes, dots, spaces, leading digits, reserved words, symbols, the empty name.",
        ),
        R(
            "20",
            LATER,
            "Types from JSON Schema: required and optional fields, nesting, enums, arrays, the empty object.",
        ),
        R(
            "21",
            LATER,
            "Types from JSON Schema: references and cycles, the depth limit, tuples, nullable, constants, the "
            "combinators, and names that need quoting or escaping.",
        ),
        R(
            "22",
            LATER,
            "One schema that cannot be converted leaves the other tools typed; no tools at all give an empty "
            "declaration.",
        ),
        R("23", LATER, "Descriptions become doc lines in which comment ends are escaped."),
        R("24", LATER, "A tool with an output schema has its output typed by an alias."),
    ),
    *table(
        "codemode",
        "codemode §13, connectors",
        R("25", LATER, "describe derives descriptors and annotations from a connector's record of tools."),
        R("26", LATER, "executeTool and revertAction dispatch by method; without a revert the answer is False."),
        R("27", LATER, "The decoration hook can add an approval or a revert to a tool."),
        R("28", LATER, "A tool replayed by running again is annotated so; together with an approval that is refused."),
        R("29", LATER, "MCP tools whose names come out the same are refused."),
        R(
            "30",
            LATER,
            "MCP results are unwrapped in the documented order: toolResult, isError, structuredContent, text "
            "(JSON if it parses), raw.",
        ),
        R(
            "31",
            LATER,
            "An OpenAPI connector has a tool per operation and `request`; schemas are combined; path, query "
            "and body values go where they belong.",
        ),
        R("32", LATER, "The tool-set connector's namespace is `tools`, or the one that was given."),
        R("33", LATER, "needs_approval true, or any function, gates a tool; false does not."),
        R("34", LATER, "Arguments are validated before a tool runs."),
        R("35", LATER, "Tools without execute are left out of bindings and types, with one warning."),
        R("36", LATER, "Tool names that come out the same after cleaning are refused."),
        R("37", LATER, "The non-durable code tool leaves gated tools out of its functions and its description."),
    ),
    *table(
        "codemode",
        "codemode §13, durable runtime",
        R("38", LATER, "A run with reads only completes and returns its result."),
        R("39", LATER, "The description names the globals and shows the connectors' hints."),
        R("40", LATER, "The message of a ReferenceError is followed by the list of globals."),
        R(
            "41",
            LATER,
            "A gated call pauses the run with one pending action that has connector, method and arguments; its "
            "effect has not happened.",
        ),
        R("42", LATER, "Approving applies the call once and completes the run."),
        R("43", LATER, "Paused and completed outputs list the calls with their states."),
        R("44", LATER, "Reads before the pause give their recorded value on resume."),
        R("45", LATER, "Rejecting ends the run, and the call is not applied."),
        R(
            "46",
            LATER,
            'Approving a run that is over is an error with "not paused"; nothing changes and nothing is pending.',
        ),
        R(
            "47",
            LATER,
            "Rolling back undoes calls from the last to the first, those that needed no approval too, and "
            "leaves status rolled_back.",
        ),
        R(
            "48",
            LATER,
            "Code that swallows the pause causes no further effect: it is still paused with one pending action.",
        ),
        R("49", LATER, "pending() without an id covers all paused runs."),
        R(
            "50",
            LATER,
            "Other arguments on replay are an error outcome that says divergence; the stale pending entry is "
            "no longer listed.",
        ),
        R("51", LATER, "A value made in a step, random for instance, is the same after the approval."),
        R(
            "52",
            LATER,
            "Rejecting while the approved call runs does nothing; the entry goes from executing to applied.",
        ),
        R(
            "53",
            LATER,
            "A connector tool that raises is an error outcome with its message, and the audit shows the error.",
        ),
        R("54", LATER, "Two runs at once have ids of their own."),
        R("55", LATER, "maxExecutions prunes the oldest finished runs and no others."),
        R(
            "56",
            LATER,
            "A snippet saved from a run is called with input; fenced code and statements work as snippets too.",
        ),
        R("57", LATER, "deleteExecution removes a run and disposes its connectors if it was not over."),
        R("58", LATER, "A tool's context has the executionId that the outcome has."),
        R(
            "59",
            LATER,
            "disposeExecution fires once on completion, not on a pause, with rejected or rolled_back where "
            "that is the end, not for a reject that came too late.",
        ),
        R("60", LATER, "onPassEnd fires for every pass, one that pauses too."),
        R("61", LATER, "What an ephemeral read returned is not stored; on resume it reads again."),
        R("62", LATER, "Bytes that a call returned are the same bytes on replay."),
        R(
            "63",
            LATER,
            "A call's result over the limit fails the run with a text that says what to do; a final result "
            "over it completes, with a placeholder in the audit.",
        ),
        R(
            "64",
            LATER,
            "Runs too old: a paused one expires as rejected, a running one as error, and the connectors of "
            "each are disposed.",
        ),
        R("65", LATER, "Code over the limit is an error outcome without an executionId."),
        R("66", LATER, "Each runtime name has its own history; names with other characters are refused."),
        R(
            "67",
            LATER,
            "Resuming is refused when a connector recorded with the run is missing, and so is running a snippet.",
        ),
        R(
            "68",
            LATER,
            "Results pass through transformResult on the first pass and on resume; if it raises, the raw "
            "result is used.",
        ),
        R(
            "69",
            LATER,
            "The process is killed and started: stored runs replay, are disposed and can be rejected.",
            note="Decision 12: a call found `executing` runs again only if its tool is marked idempotent; else "
            'the run ends with "outcome unknown" as data.',
        ),
        R("70", LATER, "Connector names that are reserved or used twice are refused when the runtime is made."),
        R(
            "71",
            LATER,
            "execute, search and describe of the handle work, the latter two without running code in the sandbox.",
        ),
        R("72", LATER, "The codec keeps bigint and bytes, tells undefined from null, and refuses cycles."),
        R(
            "73",
            LATER,
            "Truncation returns what is short as it is (the same object), marks a cut, keeps to the token "
            "budget, leaves what cannot be serialised, and its output stays valid JSON.",
        ),
        R(
            "74",
            LATER,
            "search ranks an exact method above hits in descriptions, includes snippets, and stops at 50 with "
            "a truncated flag.",
        ),
    ),
    *table(
        "codemode",
        "codemode §13, Think execute and approval",
        R(
            "75",
            LATER,
            "The sandbox calls tools.* and state.* with one object; the error for a missing key says what to pass.",
        ),
        R("76", LATER, "Types show gated tools, and calling one pauses."),
        R("77", LATER, "An error thrown by the code is an error outcome with an executionId."),
        R(
            "78",
            LATER,
            "The one-liner derives state from the agent and sets its codemode handle; the same runtime name "
            "shares its history.",
        ),
        R("79", LATER, "Whatever piece of the set-up is missing, the error names the step to take."),
        R(
            "80",
            LATER,
            "A pause is an output-available part; the model says so in words, and the gated tool has not run.",
        ),
        R(
            "81",
            LATER,
            "Approving over RPC: outcome completed, output in the transcript replaced, tool run once, and the "
            "continuation sees it.",
        ),
        R("82", LATER, "Rejecting with a reason: output replaced, tool never run, and the model goes on."),
        R(
            "83",
            LATER,
            "Another gated call later in the run pauses it again under its id, and a second approve completes it.",
        ),
        R("84", LATER, 'Approving twice: error with "not paused", transcript unchanged.'),
        R("85", LATER, 'A reject that follows an approve is an error with "no longer pending".'),
        R("86", LATER, "An approval that comes after the expiry puts the error outcome in place of the paused output."),
        R(
            "87",
            LATER,
            "If the part was compacted away, the outcome is kept as a system note with the id prefix "
            "`exec-outcome-`, shown to the provider as user, and the continuation fires.",
        ),
        R("88", LATER, "Approving works when the in-memory handle is gone."),
        R("89", LATER, "Several paused runs in one chat resolve each on its own."),
        R(
            "90",
            LATER,
            "Arguments in the transcript are cut to about 2,000 characters; pendingExecutions has them in full.",
        ),
        R(
            "91",
            LATER,
            "`autoContinue:false` records the outcome without a new turn; narration that is out of date is removed.",
        ),
    ),
    *table(
        "codemode",
        "codemode §13, browser",
        R("92", LATER, "The connector is called cdp, and its options are validated."),
        R("93", LATER, "Reads are marked to run again; the session tools are there for reuse and dynamic only."),
        R("94", LATER, "Arguments are validated before any browser work; leaving them out is accepted."),
        R("95", LATER, "A call without an execution context is an error."),
        R(
            "96",
            LATER,
            "One session per execution, stored under its key; the socket closes at the end of the pass and the "
            "session stays.",
        ),
        R("97", LATER, "An attach handle stays valid over a reconnect."),
        R("98", LATER, "No lock is held during network calls; a session created twice is deleted once."),
        R("99", LATER, "A missing session id, or an event sent as a command, gets an error that teaches what to do."),
        R("100", LATER, "A session that expired during a pause is a clear failure."),
        R("101", LATER, "A one-shot session is disposed once; of dynamic ones the promoted stays and the others go."),
        R("102", LATER, "A shared session is replaced on 404 and 410 only."),
        R("103", LATER, "Reuse shares one session over executions."),
        R(
            "104",
            LATER,
            "sweep closes stale shared and execution entries and keeps fresh ones; a resume after it fails "
            "loudly; touching keeps active ones out of it.",
        ),
        R("105", LATER, "First calls made at once share one connect."),
        R("106", LATER, "The live view's URL, the rewriting of its mode, and the error for a missing target."),
        R(
            "107",
            LATER,
            "A screenshot is kept for the UI and summarised for the model; base64 is left out; cycles and "
            "bigints can be serialised.",
        ),
        R(
            "108",
            LATER,
            "browser_execute with the default quick actions; `quickActions:false` drops them, and cdpUrl alone "
            "skips them.",
        ),
        R("109", LATER, "A session survives a pause for approval from end to end."),
        R("110", LATER, "CDP errors and code errors are run errors, and the debug log works."),
        R(
            "111",
            LATER,
            "Quick actions: which there are by default, the allow list, what the schema demands, host options "
            "not shown, maxChars by shape, details in errors.",
        ),
    ),
    *table(
        "codemode",
        "codemode §13, extensions and skills",
        R("112", LATER, "Loading finds an extension's tools, several too; loading a name twice is refused."),
        R(
            "113",
            LATER,
            "Unloading removes tools and stored source; an unknown name is False; a call afterwards is an "
            "error; loading again is allowed.",
        ),
        R("114", LATER, "Extension tools are prefixed, merged and run, and their errors come through."),
        R("115", LATER, "Without the permission an extension has no network."),
        R("116", LATER, "Extensions are restored when the agent is made anew, once."),
        R("117", LATER, "Extension names are cleaned; an empty one is an error."),
        R(
            "118",
            LATER,
            "A source gives tools and hooks; its hooks are found and called, skipped where not subscribed, "
            "their errors caught; a flat object is refused.",
        ),
        R("119", LATER, "Observing hooks get snapshots over the host bridge."),
        R("120", LATER, "The host bridge denies what the permissions do not grant, each by its own error."),
        R(
            "121",
            SESSIONS,
            "Skills: parsing, a source from a manifest, the catalog, tools only where there are skills, the "
            "run tool only with a runner.",
        ),
        R("122", LATER, "Script errors: path, kind, extension, a path that is not normalised."),
        R(
            "123",
            SESSIONS,
            "Of two sources with one skill name the first wins; a failing source is skipped; warnings are reset.",
        ),
        R(
            "124",
            SESSIONS,
            "A bucket as source: skills listed, loaded and read, binaries as base64, only allowed names, "
            "refreshed at the interval.",
        ),
        R(
            "125",
            LATER,
            "A JavaScript script gets input, ctx, tools, files and output; a missing default export and code "
            "that must be compiled are errors; the bundled form works.",
        ),
        R(
            "126",
            LATER,
            "Scripts read the workspace by default, need read-write to write, get nothing with none; stat is "
            "normalised.",
        ),
        R(
            "127",
            LATER,
            "Bash scripts: files and tools at hand, binaries mounted, a non-zero exit as a result, and without "
            "write access no command that writes.",
        ),
        R(
            "128",
            LATER,
            "Python scripts: function and CLI style, output files, size limit, tools by name, workspace reads, "
            "timeout of a CPU loop, failure text.",
        ),
        R("129", LATER, "Unsafe paths of mounted resources are refused."),
    ),
)
