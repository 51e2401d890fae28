// Tool calls: of the server, of the page, and those that a person approves.

import { setTimeout as pause } from "node:timers/promises";
import { equal, eventually, ok } from "../lib/expect.mjs";
import { roles, textOf, toolParts, visible } from "../lib/messages.mjs";

const LOCATION = {
  description: "Where the user is",
  parameters: { type: "object", properties: { hint: { type: "string" } } },
};

/** The option `tools` with getLocation; one that only declares it gets no execute of its own accord. */
const locationTool = (execute = async () => "unused") => ({ tools: { getLocation: { ...LOCATION, execute } } });

/** Waits until the call of getLocation waits for the page. `isStreaming` stays true meanwhile, hence the status. */
const openCall = (tab) =>
  eventually(() => {
    const part = toolParts(tab.messages, "getLocation").at(-1);
    return part?.state === "input-available" && tab.chat.status === "ready" && part;
  }, () => `the call to wait: ${tab.summary}`);

/** Waits until the tool's calls are in these states and the turn rests. */
const calls = (tab, tool, ...states) =>
  eventually(() => {
    const parts = toolParts(tab.messages, tool);
    return JSON.stringify(parts.map((part) => part.state)) === JSON.stringify(states) && tab.chat.status === "ready" && parts;
  }, () => `${tool} in states ${states}: ${tab.summary}`);

/** Waits until the turn is over, so that its answer is stored, and the tab shows exactly what is stored. Gives that. */
const showsWhatIsStored = (t, tab) => {
  let saved;
  return eventually(async () => {
    saved = visible(await t.stored());
    return tab.idle && tab.text === textOf(saved.at(-1)) && JSON.stringify(visible(tab.messages)) === JSON.stringify(saved) && saved;
  }, () => `what is stored: ${JSON.stringify(visible(tab.messages))} instead of ${JSON.stringify(saved)}`, 5000);
};

const answering = (output) => ({ onToolCall: ({ toolCall, addToolOutput }) => addToolOutput({ toolCallId: toolCall.toolCallId, output }) });

/** Waits until the call of danger asks for approval in `tab`. */
const approvalRequest = (tab) =>
  eventually(() => {
    const part = toolParts(tab.messages, "danger").at(-1);
    return part?.state === "approval-requested" && part;
  }, () => `the approval request: ${tab.summary}`);

/** Asks for a dangerous call, and gives its part once the turn rests. */
async function askForDanger(tab, target) {
  await tab.say(`CALL danger {"target":"${target}"}`);
  const part = await approvalRequest(tab);
  await eventually(() => tab.idle, "the turn to rest");
  return part;
}

/** A continuation extends the message of the call; the original makes a message of its own of it. */
const continued = (messages) => ok(["ua", "uaa"].includes(roles(messages)), `roles ${roles(messages)}`);

export const tools = {
  "tool: server tool": async (t) => {
    const tab = await t.tab();
    await tab.ask('CALL add {"a":1,"b":2}');
    const [part] = toolParts([tab.last], "add");
    equal(part?.state, "output-available", "state");
    equal(part.output, { sum: 3 }, "output");
    equal(tab.text, 'RESULT add {"sum":3}', "text");
  },

  "tool: several server tools in one step, and several steps": async (t) => {
    const tab = await t.tab();
    await tab.ask('CALLS [["add",{"a":1,"b":2}],["add",{"a":3,"b":4}]]');
    equal(toolParts([tab.last], "add").map((part) => part.output?.sum), [3, 7], "outputs");
    await tab.ask('LOOP 3 add {"a":1,"b":1}');
    equal(toolParts([tab.last], "add").length, 3, "steps");
    equal(tab.text, "DONE 3", "text");
  },

  "tool: a throwing server tool becomes an error part, and the model goes on": async (t) => {
    const tab = await t.tab();
    await tab.ask("CALL boom {}");
    const [part] = toolParts([tab.last], "boom");
    equal(part?.state, "output-error", "state");
    ok(String(part.errorText).includes("boom"), `errorText ${part.errorText}`);
    ok(tab.text.startsWith("RESULT boom"), `text ${tab.text}`);
  },

  "client tool: execute runs by itself and the turn goes on": async (t) => {
    const inputs = [];
    const execute = async (input) => {
      inputs.push(input);
      return { city: "Paris" };
    };
    const tab = await t.tab({ ...locationTool(execute), experimental_automaticToolResolution: true });
    await tab.say('CALL getLocation {"hint":"x"}');
    await tab.answered('RESULT getLocation {"city":"Paris"}');
    equal(inputs, [{ hint: "x" }], "inputs");
    continued(tab.messages);
    equal(toolParts(tab.messages, "getLocation")[0].state, "output-available", "state");
  },

  "client tool: onToolCall + addToolOutput": async (t) => {
    const output = { city: "Brno" };
    const onToolCall = ({ toolCall, addToolOutput }) => addToolOutput({ toolCallId: toolCall.toolCallId, output });
    const tab = await t.tab({ ...locationTool(), onToolCall });
    await tab.say("CALL getLocation {}");
    await tab.answered('RESULT getLocation {"city":"Brno"}');
    const saved = await t.stored();
    continued(saved);
    equal(toolParts(saved, "getLocation")[0].output, output, "stored output");
  },

  "client tool: answered later from the page with addToolOutput": async (t) => {
    const tab = await t.tab(locationTool());
    await tab.say("CALL getLocation {}");
    const { toolCallId } = await openCall(tab);
    await pause(100);
    tab.chat.addToolOutput({ toolCallId, toolName: "getLocation", output: { city: "Oslo" } });
    await tab.answered('RESULT getLocation {"city":"Oslo"}');
  },

  "client tool: output-error is stored and shown": async (t) => {
    const tab = await t.tab(locationTool());
    await tab.say("CALL getLocation {}");
    const { toolCallId } = await openCall(tab);
    tab.chat.addToolOutput({ toolCallId, toolName: "getLocation", state: "output-error", errorText: "no GPS" });
    const part = await eventually(async () => {
      const [saved] = toolParts(await t.stored(), "getLocation");
      return saved?.state === "output-error" && saved;
    }, "the error to be stored");
    equal(part.errorText, "no GPS", "errorText");
    await tab.ask("ECHO after");
    equal(tab.text, "after", "the next turn");
  },

  "client tool: two calls in one step, both answered before the turn goes on": async (t) => {
    let calls = 0;
    const onToolCall = async ({ toolCall, addToolOutput }) => {
      const output = ++calls;
      await pause(output * 30);
      addToolOutput({ toolCallId: toolCall.toolCallId, output });
    };
    const tab = await t.tab({ ...locationTool(), onToolCall });
    await tab.say('CALLS [["getLocation",{}],["getLocation",{}]]');
    await tab.answered("RESULT getLocation 1 | getLocation 2");
  },

  "client tool: two calls answered out of order, with a reload in between": async (t) => {
    const tab = await t.tab(locationTool());
    const other = await t.tab();
    await tab.say('CALLS [["getLocation",{"hint":"1"}],["getLocation",{"hint":"2"}]]');
    const [, second] = await calls(tab, "getLocation", "input-available", "input-available");
    tab.chat.addToolOutput({ toolCallId: second.toolCallId, toolName: "getLocation", output: "two" });
    await calls(other, "getLocation", "input-available", "output-available");
    await tab.close();
    const again = await t.tab(locationTool());
    const [first] = await calls(again, "getLocation", "input-available", "output-available");
    again.chat.addToolOutput({ toolCallId: first.toolCallId, toolName: "getLocation", output: "one" });
    await again.answered("RESULT getLocation one | getLocation two");
    await other.answered("RESULT getLocation one | getLocation two");
    continued(await showsWhatIsStored(t, again));
    await showsWhatIsStored(t, other);
  },

  "client tool: the page is reloaded before the turn that goes on": async (t) => {
    const tab = await t.tab({ ...locationTool(), ...answering("Brno"), body: { pause: 500 } });
    const other = await t.tab();
    await tab.say("CALL getLocation {}");
    await calls(other, "getLocation", "output-available");
    await tab.close();
    const again = await t.tab(locationTool());
    equal(again.text, "", "the text so far");
    await again.answered("RESULT getLocation Brno");
    continued(await showsWhatIsStored(t, again));
    await showsWhatIsStored(t, other);
  },

  "client tool: the page is reloaded during the turn that goes on": async (t) => {
    const tab = await t.tab({ ...locationTool(), ...answering("Brno"), body: { pause: 500 } });
    const other = await t.tab();
    await tab.say("CALL getLocation {}");
    await other.streamedPast(5);
    await tab.close();
    const again = await t.tab(locationTool());
    await again.answered("RESULT getLocation Brno");
    continued(await showsWhatIsStored(t, again));
    await showsWhatIsStored(t, other);
  },

  "client tool: the line is cut during the turn that goes on": async (t) => {
    const tab = await t.tab(
      { ...locationTool(), ...answering("Brno"), body: { pause: 500 } },
      { minReconnectionDelay: 50, maxReconnectionDelay: 100 },
    );
    await tab.say("CALL getLocation {}");
    await tab.streamedPast(5);
    equal(tab.cutLine(), 1, "lines cut");
    await eventually(async () => (await t.stored()).at(-1).parts.length > 2, "the answer to be stored");
    await tab.answered("RESULT getLocation Brno");
    continued(await showsWhatIsStored(t, tab));
  },

  "client tool: the page is reloaded right after the turn that goes on": async (t) => {
    const tab = await t.tab({ ...locationTool(), ...answering("Brno") });
    await tab.say("CALL getLocation {}");
    await tab.answered("RESULT getLocation Brno");
    await tab.close();
    continued(await showsWhatIsStored(t, await t.tab()));
  },

  "client tool: several hops": async (t) => {
    const tab = await t.tab({ ...locationTool(), ...answering("Brno") });
    const other = await t.tab();
    await tab.say("LOOP 4 getLocation {}");
    await tab.answered("DONE 4");
    await other.answered("DONE 4");
    continued(await showsWhatIsStored(t, tab));
    await showsWhatIsStored(t, other);
  },

  "client tool: declared on the server, answered by onToolCall": async (t) => {
    const tab = await t.tab(answering("Oslo"));
    await tab.say('CALL locate {"near":"me"}');
    await tab.answered("RESULT locate Oslo");
    continued(await showsWhatIsStored(t, tab));
  },

  "client tool: declared on the server, a person approves and then the page answers": async (t) => {
    const offered = [];
    const onToolCall = ({ toolCall }) => void offered.push(toolCall.toolName);
    const tab = await t.tab({ onToolCall });
    const other = await t.tab();
    await tab.say('CALL unlock {"door":"front"}');
    const [{ approval, toolCallId }] = await calls(tab, "unlock", "approval-requested");
    tab.chat.addToolApprovalResponse({ id: approval.id, approved: true });
    await eventually(async () => toolParts(await t.stored(), "unlock")[0].state === "approval-responded", "the decision to be stored");
    await pause(200);
    equal(toolParts(other.messages, "unlock")[0].state, "approval-responded", "state in the other tab");
    equal(offered, [], "the hook does not run it by itself");
    tab.chat.addToolOutput({ toolCallId, toolName: "unlock", output: "open" });
    await tab.answered("RESULT unlock open");
    await other.answered("RESULT unlock open");
    continued(await showsWhatIsStored(t, tab));
  },

  "client tool: declared on the server, and denied": async (t) => {
    const tab = await t.tab(answering("unexpected"));
    await tab.say('CALL unlock {"door":"front"}');
    const [{ approval }] = await calls(tab, "unlock", "approval-requested");
    tab.chat.addToolApprovalResponse({ id: approval.id, approved: false });
    await eventually(() => tab.text.startsWith("RESULT unlock") && tab.idle, () => `the continuation: ${tab.summary}`);
    const [, saved] = await showsWhatIsStored(t, tab);
    equal(toolParts([saved], "unlock")[0].state, "output-denied", "stored state");
  },

  "client tool: a page that goes on itself": async (t) => {
    const tab = await t.tab({ ...locationTool(), autoContinueAfterToolResult: false });
    const other = await t.tab();
    await tab.say("CALL getLocation {}");
    const { toolCallId } = await openCall(tab);
    tab.chat.addToolOutput({ toolCallId, toolName: "getLocation", output: "Oslo" });
    await calls(other, "getLocation", "output-available");
    await pause(200);
    equal(tab.text, "", "nothing by itself");
    tab.chat.sendMessage();
    await tab.answered("RESULT getLocation Oslo");
    await other.answered("RESULT getLocation Oslo");
    continued(await showsWhatIsStored(t, tab));
    await showsWhatIsStored(t, other);
  },

  "approval: approve": async (t) => {
    const tab = await t.tab();
    const { approval } = await askForDanger(tab, "moon");
    ok(approval?.id, "no approval id");
    tab.chat.addToolApprovalResponse({ id: approval.id, approved: true });
    await tab.answered('RESULT danger {"destroyed":"moon"}');
    equal(toolParts(tab.messages, "danger")[0].state, "output-available", "state");
    equal(toolParts(await t.stored(), "danger")[0].output, { destroyed: "moon" }, "stored output");
  },

  "approval: deny": async (t) => {
    const tab = await t.tab();
    const { approval } = await askForDanger(tab, "moon");
    tab.chat.addToolApprovalResponse({ id: approval.id, approved: false });
    await eventually(() => tab.text.startsWith("RESULT danger") && tab.idle, () => `the continuation: ${tab.summary}`);
    const saved = await t.stored();
    equal(toolParts(saved, "danger")[0].state, "output-denied", "stored state");
    ok(!JSON.stringify(saved).includes("destroyed"), "the tool ran");
    return tab.text;
  },

  "approval: with other input, in a frame of the page's own": async (t) => {
    const tab = await t.tab();
    const { toolCallId } = await askForDanger(tab, "moon");
    const frame = { type: "cf_agent_tool_approval", toolCallId, approved: true, autoContinue: true };
    tab.agent.send(JSON.stringify({ ...frame, input: { target: 5 } }));
    const refused = await eventually(() => {
      const part = toolParts(tab.messages, "danger").at(-1);
      return part?.approval?.error && part;
    }, () => `the refusal: ${tab.summary}`);
    equal(refused.state, "approval-requested", "state");
    tab.agent.send(JSON.stringify({ ...frame, input: { target: "mars" } }));
    await tab.answered('RESULT danger {"destroyed":"mars"}');
    equal(toolParts(tab.messages, "danger")[0].input, { target: "mars" }, "input");
    equal(toolParts(await t.stored(), "danger")[0].output, { destroyed: "mars" }, "stored output");
  },

  "approval: survives a reload": async (t) => {
    const tab = await t.tab();
    await askForDanger(tab, "moon");
    await tab.close();
    const again = await t.tab();
    const { approval } = await approvalRequest(again);
    again.chat.addToolApprovalResponse({ id: approval.id, approved: true });
    await again.answered('RESULT danger {"destroyed":"moon"}');
  },

  "tabs: an approval given in one tab continues in both": async (t) => {
    const [asking, other] = await t.twoTabs();
    await askForDanger(asking, "x");
    const { approval } = await approvalRequest(other);
    other.chat.addToolApprovalResponse({ id: approval.id, approved: true });
    const want = 'RESULT danger {"destroyed":"x"}';
    await eventually(() => asking.text === want && other.text === want, () => `both: ${asking.summary} / ${other.summary}`);
  },
};
