"""The wire protocol, §16 of its reference: what a raw client sees on the socket and over HTTP.

Short names in the sentences: *probe* is `cf_agent_stream_resume_request`, *ack* `cf_agent_stream_resume_ack`;
*resuming*, *pending* and *none* are the three answers to a probe; a *chunk* is `cf_agent_use_chat_response` with
`done:false` and a JSON body, *done* the same with `done:true`; a *snapshot* is `cf_agent_chat_messages` without
`connect`. "npm client" marks what is seen with the published client in front of the server.
"""

from typing import Final

from tests.requirements.owners import BASE, DURABLE, SKELETON, TOOLS
from tests.requirements.rows import R, Requirement, table

__all__ = ["ROWS"]

ROWS: Final[tuple[Requirement, ...]] = (
    *table(
        "protocol",
        "protocol §16.1",
        R(
            "1",
            SKELETON,
            "A socket on `/agents/my-agent/room-1` lands on class `MyAgent`, instance `room-1`; its identity "
            "frame has agent `my-agent` and name `room-1`.",
        ),
        R(
            "2",
            BASE,
            "Class names become path segments by the kebab rule: `MY_AGENT` and `MyAgent` are `my-agent`, "
            "`HTTPAgent` is `h-t-t-p-agent`, `My_Agent` is `my--agent`.",
        ),
        R("3", SKELETON, "A plain request for a class segment that no registered agent has gets HTTP 400."),
        R("4", SKELETON, "`/agents`, `/agents/x` without an instance, and any path outside the prefix get 404."),
        R(
            "5",
            BASE,
            "A root instance name is taken as it stands in the URL: `/agents/my-agent/a%20b` identifies itself "
            "as `a%20b`.",
        ),
        R(
            "6",
            SKELETON,
            "State is kept per instance name: two names share nothing, one name always finds its own again.",
        ),
        R("7", BASE, "The connection hook sees the query string unchanged, and `_pk` is used as the connection id."),
        R(
            "8",
            BASE,
            'With `basePath: "user"` the client connects to `/user`, learns its instance name from the '
            "identity frame only, and `ready` resolves.",
        ),
        R(
            "9",
            SKELETON,
            "HTTP `GET …/get-messages` gives 200 and the stored messages as a JSON array in their order; a new "
            "instance gives `[]`.",
        ),
        R(
            "10",
            BASE,
            "Every path that ends in `/get-messages` answers with the transcript, also where the application "
            "has its own request hook.",
        ),
        R(
            "11",
            BASE,
            "Sub-paths other than that are handed with method and body untouched to the application's request "
            "handler; the one there by default says 404.",
        ),
        R(
            "12",
            BASE,
            "With CORS on, `OPTIONS` on an agent URL is 200 with the CORS headers, and no agent wakes up for it.",
        ),
        R(
            "13",
            BASE,
            "`/agents/parent/p/sub/child/c` lands on that parent's child of class `Child`, its name decoded; "
            "identity says agent `child`, name `c`.",
        ),
        R(
            "14",
            BASE,
            "A child socket belongs to the child: the parent does not answer a probe sent there, and the "
            "parent's broadcasts do not arrive there.",
        ),
        R("15", BASE, "A request body sent through a child path arrives as a stream, byte for byte."),
        R(
            "16",
            BASE,
            "A refused socket is accepted first and then closed with 1008 or 4000 to 4999; the npm client "
            "stops reconnecting and sets `connectionError`.",
        ),
    ),
    *table(
        "protocol",
        "protocol §16.2",
        R(
            "17",
            BASE,
            "Connecting to an agent that has state gives identity with `stateFollows:true`, then state, then "
            "mcp_servers; without state, identity has no such flag and mcp_servers follows.",
        ),
        R(
            "18",
            BASE,
            "A connecting client gets one state frame, even if its own connect made the initial state; the "
            "clients already there get a broadcast.",
        ),
        R("19", BASE, "An agent that opts out of identity sends none, and state still comes first."),
        R("20", SKELETON, "Each reconnection gets the whole opening sequence again."),
        R(
            "21",
            BASE,
            "With protocol messages suppressed a connection gets no identity, state or mcp_servers and no "
            "state broadcasts; its RPC calls are answered.",
        ),
        R(
            "22",
            BASE,
            "A state frame from a client goes to every other connection and not back to the one that sent it.",
        ),
        R("23", BASE, "When the server changes state everybody is told, the caller of the RPC that changed it too."),
        R(
            "24",
            BASE,
            'State that validation refuses: the sender gets `cf_agent_state_error` ("State update '
            'rejected"), nobody else anything, and the stored state stays.',
        ),
        R("25", BASE, "An exception in the state-change hook does not stop the broadcast."),
        R(
            "26",
            BASE,
            'On a read-only connection a state frame gets `cf_agent_state_error` "Connection is readonly", a '
            "mutating method an RPC error with that text, a reading method its reply; state broadcasts still "
            "come.",
        ),
        R(
            "27",
            BASE,
            "Read-only can be switched while the connection lives and is looked up for each connection anew.",
        ),
        R(
            "28",
            BASE,
            "A call of an existing callable answers `success:true, done:true` with `result`.",
            note="Decision 17: on the wire a callable answers to its Python name and to its camelCase form.",
        ),
        R(
            "29",
            BASE,
            "A callable that returns nothing answers `done:true` without a `result` key; `None` returned on "
            "purpose is `result:null`.",
            note="Python cannot tell the two apart: a method that is annotated `-> None` returns nothing, any other "
            "means null.",
        ),
        R(
            "30",
            BASE,
            'Unknown method: "Method x does not exist". A method that is not marked callable: "Method x is '
            'not callable".',
        ),
        R("31", BASE, "A callable that raises answers `success:false` with the exception's message."),
        R("32", BASE, "A streaming callable sends any number of `done:false` frames and then one with `done:true`."),
        R(
            "33",
            BASE,
            "A streaming callable that raises while open sends one error frame; once closed nothing more goes out.",
        ),
        R("34", BASE, "Calls that overlap on one socket are answered each on its own, told apart by `id`."),
        R(
            "35",
            BASE,
            "An RPC frame with missing or null `args`, or without `id` or `method`, gets no reply and harms "
            "nothing; unknown extra fields are ignored.",
            note="Fault SC-07 asks for an error answer to null `args` of a declared method; settle both with one rule.",
        ),
        R(
            "36",
            SKELETON,
            "Text that is not JSON, empty text and unknown frame types are ignored, and the connection goes on "
            "working.",
        ),
        R("37", BASE, "The answer to a call whose socket is gone is dropped without a sound."),
        R(
            "38",
            BASE,
            "npm client: a call made while disconnected goes out after the reconnect; one already sent when "
            'the line breaks rejects with "Connection closed".',
        ),
        R(
            "39",
            SKELETON,
            "What a client sends at once is handled only after its connect hook has got as far as sending the "
            "opening frames.",
        ),
    ),
    *table(
        "protocol",
        "protocol §16.3",
        R(
            "40",
            SKELETON,
            "Connecting to an idle Think agent: the first frame is `cf_agent_chat_messages` with "
            "`connect:true` and the whole list.",
        ),
        R(
            "41",
            SKELETON,
            "Connecting while a turn streams: the first frame is resuming without `probeId`, and no transcript "
            "is sent.",
        ),
        R(
            "42",
            BASE,
            "Connecting while a turn is accepted but does not stream yet: pending first, then the transcript.",
        ),
        R("43", SKELETON, "After the end of a stream a connect brings the transcript again and no resuming."),
        R(
            "44",
            SKELETON,
            "A chat request sends a snapshot with the new user message to the other connections and none to "
            "its sender.",
        ),
        R(
            "45",
            SKELETON,
            "Every connection gets the turn's chunks, under the request id chosen by the client that asked.",
        ),
        R(
            "46",
            SKELETON,
            "The `start` chunk of a new turn names in `messageId` the id under which the assistant message is "
            "stored; an id that the producer supplies is kept.",
            divergence="Decision 9: assistant ids are always the server's. `start` and storage agree, but an "
            "id that a model's stream brings along is not used.",
        ),
        R(
            "47",
            SKELETON,
            "Chunk frames of a request count `seq` 0, 1, 2, …; terminal, error and control frames have no `seq`.",
        ),
        R(
            "48",
            SKELETON,
            "A turn ends on every connection with the snapshot that holds the assistant message and after it "
            '`done:true, outcome:"completed"`.',
        ),
        R(
            "49",
            SKELETON,
            "`done` carries `messageIds`: the ids of the user messages at the end of the request's list.",
        ),
        R("50", SKELETON, "A turn that made no parts stores no message and sends no snapshot; it ends with `done`."),
        R(
            "51",
            BASE,
            "A request that is not a POST, has no body, a body that cannot be parsed, or `messages` that is no "
            "list starts no turn and sends no frame.",
            divergence="Decision 10: a chat request that carries an id ends with an error frame for that id; "
            "what has no id is logged and ignored. No turn starts in either case.",
        ),
        R(
            "52",
            BASE,
            "Extra body fields reach the application, without `messages`, `clientTools` and `trigger`; a "
            "request that has none clears the earlier ones.",
        ),
        R("53", SKELETON, "A second request during a turn waits: none of its chunks precede the first one's `done`."),
        R(
            "54",
            SKELETON,
            "A user message posted again under an id that is known is not stored twice.",
            divergence="Decision 8: with the same content it is a redelivery and nothing changes; with other "
            "content it is an edit: a sibling with a new id, the later messages leave the active path, and the "
            "model answers it.",
        ),
        R(
            "55",
            BASE,
            "An assistant message posted under the client's own id, with a tool call the server knows, makes "
            "no second assistant; stored outputs beat the stale states posted.",
        ),
        R(
            "56",
            BASE,
            "`regenerate-message` adds a second answer beside the old one, below the posted user message that "
            "is last; the next snapshot shows that branch alone, and what came earlier stays.",
        ),
        R(
            "57",
            BASE,
            "A programmatic turn sends everybody the snapshot with its input, then chunks under an id the "
            "server made, then the usual end.",
        ),
        R("58", SKELETON, "An error before streaming is one frame: `body` is the text, with `done:true, error:true`."),
        R(
            "59",
            SKELETON,
            "An error in mid-stream is an `error:true, done:false` frame with plain text, the snapshot of the "
            'partial, then `done:true, outcome:"error"`; the next turn works.',
        ),
        R("60", SKELETON, "No chunk body on the wire is ever of type `error` or `abort`."),
        R("61", BASE, "A `cf_agent_chat_messages` frame from a client changes nothing on the server."),
    ),
    *table(
        "protocol",
        "protocol §16.4",
        R(
            "62",
            TOOLS,
            "The model is offered the `clientTools` of the request; schemas in a tool-result frame replace "
            "them; a clear or an empty list removes them.",
        ),
        R(
            "63",
            TOOLS,
            'A turn that stops at an unanswered client tool sends `finish` with `finishReason:"tool-calls"`, '
            "the snapshot with that part `input-available`, and `done`.",
        ),
        R(
            "64",
            TOOLS,
            "A tool result settles the part as `output-available`; one `cf_agent_message_updated` goes to "
            "everybody, also to the sender.",
            note="Decision 14: the frame follows tool changes only; that a message was stored is announced by "
            "the snapshot. A tab that has not taken up the offer of that message's stream is not sent it: the "
            "replay brings the change, and the hook would put it on top.",
        ),
        R(
            "65",
            TOOLS,
            'A result with `state:"output-error"` makes the part `output-error` with the text given, or '
            "`Tool execution denied by user` if there is none.",
        ),
        R(
            "66",
            TOOLS,
            "Nothing changes and nobody is told when a result names a call that is unknown, denied or already settled.",
            note="Decision 5 goes further than the original: with `autoContinue:true` such a result also "
            "starts nothing.",
        ),
        R(
            "67",
            TOOLS,
            "A result is accepted for a part in `approval-requested` and for one in `approval-responded`.",
            note="Decision 13: this is how a client tool that needs approval gets its output, through "
            "`addToolOutput` after the approval.",
        ),
        R(
            "68",
            TOOLS,
            "Approving makes the part `approval-responded`, denying `output-denied`; the other approval fields "
            "stay, and an approval without id gets the call id.",
        ),
        R(
            "69",
            TOOLS,
            "With `autoContinue:true` a continuation starts about 50 ms later under a request id the server "
            "made; with `false` none does.",
            note="Decision 4: it is created in the transaction of the last answer or of the turn's close, "
            "whichever is later, with `not_before` = now + 50 ms.",
        ),
        R(
            "70",
            TOOLS,
            "However many parallel results come, in whatever order, there is one continuation, after the last of them.",
        ),
        R(
            "71",
            TOOLS,
            "An unanswered sibling call holds the continuation without limit; its answer releases it, be it an "
            "error with `autoContinue:false`.",
            note="Decision 3: siblings are the calls of one step. Decision 6: a new user message settles what "
            "is open as errors.",
        ),
        R("72", TOOLS, "A single errored result, with nothing else opted in, starts no continuation."),
        R(
            "73",
            TOOLS,
            "A result in mid-stream goes into the message being streamed and is still there when it has been "
            "stored; only after the turn's end does the continuation start.",
        ),
        R("74", TOOLS, "Results that arrive at the same time never overwrite each other's parts."),
        R("75", TOOLS, "A denial with `autoContinue:true` continues the chat as well, and the tool does not run."),
        R(
            "76",
            TOOLS,
            "The output of an approved server tool comes as a chunk of the continuation and is stored on the "
            "part of the call.",
        ),
        R(
            "77",
            TOOLS,
            "All frames of a continuation carry `continuation:true`, and its `start` chunk has no `messageId`.",
        ),
        R(
            "78",
            TOOLS,
            "Nobody who probes right behind a tool-result frame is told none: the answer is pending, with the "
            "id the continuation will have.",
        ),
        R(
            "79",
            TOOLS,
            "The start of a continuation sends resuming without `probeId` to the connection that probed, and "
            "no chunk until it acks; the others get chunks live.",
        ),
        R(
            "80",
            TOOLS,
            'A probe from another connection is none with `reason:"continuation-owned"` while the owner is '
            "connected, and resuming once the owner's socket is closed.",
        ),
        R(
            "81",
            TOOLS,
            "A continuation that never streams releases the waiting connections with a none that has no reason.",
        ),
        R("82", TOOLS, "The continuation runs even if the connection that owns it closes before it starts."),
        R(
            "83",
            TOOLS,
            "A result between the firing of the barrier and the first chunk leads to one more continuation afterwards.",
            divergence="Decisions 3 to 5: the continuation exists only once every call of the step is settled, "
            "so such a result changes nothing and starts nothing.",
        ),
        R("84", TOOLS, "The continuation has the custom body fields of the request it goes back to."),
    ),
    *table(
        "protocol",
        "protocol §16.5",
        R(
            "85",
            SKELETON,
            'An idle agent answers a probe with none, `reason:"idle"` and the probe\'s `probeId`; a probe '
            "that has no `probeId` gets an answer that has none.",
        ),
        R(
            "86",
            SKELETON,
            "While a stream runs a probe gets resuming with its own `probeId`, even if the connect already "
            "brought a resuming unasked.",
        ),
        R(
            "87",
            SKELETON,
            "From offer to ack a connection gets no chunks; after the ack all stored ones in order with "
            "`replay:true`, then `replayComplete`, then live ones with no gap and no overlap.",
        ),
        R("88", SKELETON, "A replayed frame has the `body`, `seq` and `continuation` that it had live."),
        R(
            "89",
            BASE,
            "An ack with the wrong id during a stream gets no frame, and live chunks flow to that connection again.",
        ),
        R(
            "90",
            SKELETON,
            "With nothing active, an ack for an id that is unknown or long over gets a single `done:true, "
            "replay:true` with an empty body.",
        ),
        R(
            "91",
            BASE,
            "A stream that is over before its ack came: the connection that still owes it gets snapshot and "
            "terminal frame all the same.",
        ),
        R(
            "92",
            BASE,
            "A probe while a request is accepted but does not stream is answered pending with its id; the "
            "start of the stream brings resuming.",
        ),
        R(
            "93",
            BASE,
            "While several requests are queued, a parked connection waits until one of them streams or none is left.",
        ),
        R(
            "94",
            BASE,
            "After a failed turn, a new connection's probe gets resuming with the failed id; to its ack the "
            "server sends the partial's chunks and last the error text with `done:true, error:true`, that "
            "frame without `replay`. A second tab can do the same.",
        ),
        R(
            "95",
            BASE,
            "A new accepted request or a clear ends the replay of a failure: the next probe gets pending or idle.",
        ),
        R(
            "96",
            DURABLE,
            "A stream left without a writer by a restart: offer and ack bring its chunks and `done:true, "
            "replay:true`; one assistant is stored, and whoever acks again gets a bare done.",
            note="What a tab sees once recovery goes on with that turn is fault RS-11.",
        ),
        R(
            "97",
            SKELETON,
            "npm client: a reload in mid-stream with the React hook sends one ack and ends with one assistant "
            "whose text is not doubled.",
        ),
        R("98", TOOLS, "npm client: a reconnect in the middle of a continuation ends with the exact text."),
        R("99", BASE, "A `probeId` sent a second time is answered a second time."),
    ),
    *table(
        "protocol",
        "protocol §16.6",
        R(
            "100",
            TOOLS,
            'drop: for the sender a snapshot without its message and then `done`, `outcome:"skipped"`; '
            "nothing for the others and nothing in storage.",
        ),
        R(
            "101",
            TOOLS,
            'latest and debounce: a superseded request ends with `outcome:"skipped"` for its sender, and its '
            "user message stays stored.",
            note="Decision 7: under latest the superseded message is shown but left out of every model prompt.",
        ),
        R(
            "102",
            TOOLS,
            "merge: all user messages are stored, and one turn answers the overlapping ones.",
            note="Decision 7: under merge they are all in the prompt.",
        ),
        R(
            "103",
            TOOLS,
            "No strategy applies to a regenerate, to the first request on an idle agent, or right after a clear.",
        ),
        R(
            "104",
            SKELETON,
            "Cancelling the running request stops its chunks, stores and broadcasts the partial, and ends it "
            'for all with `outcome:"aborted"`.',
        ),
        R("105", SKELETON, "Cancelling an unknown id sends no frame, and the agent works on."),
        R(
            "106",
            SKELETON,
            'A queued request that is cancelled ends with `outcome:"aborted"` and without a call of the model.',
        ),
        R(
            "107",
            SKELETON,
            "A clear sends `cf_agent_chat_clear` to the others and not to its sender; afterwards "
            "`get-messages` is `[]`, what was queued ends skipped, no pending continuation runs, and those who "
            "wait for one get none.",
            note="The part about continuations needs client tools.",
        ),
        R("108", BASE, "A clear made by the server reaches all connections."),
        R(
            "109",
            DURABLE,
            "`cf_agent_chat_recovering` is sent when it changes, again on connect while it holds, and is taken "
            "back by every terminal outcome.",
        ),
        R("110", SKELETON, "The turn goes on when the socket that asked for it closes."),
        R(
            "111",
            DURABLE,
            "Agent-tool events arrive live as started (0), chunks 1 to n, terminal; a new connection gets the "
            "same series with `replay:true`.",
        ),
    ),
)
