import { Suspense, useEffect } from "react";
import { AnswersProvider } from "../lib/answers";
import type { Connection } from "../lib/connection";
import type { Place } from "../lib/place";
import { useConversation } from "../lib/useConversation";
import { useStickToBottom } from "../lib/useStickToBottom";
import { Composer } from "./Composer";
import { EmptyState } from "./EmptyState";
import { ErrorBanner } from "./ErrorBanner";
import { Icon } from "./Icon";
import { Loading } from "./Loading";
import { Toolbar } from "./Toolbar";
import { Transcript } from "./Transcript";

type Props = {
  place: Place;
  agentClass: string;
  onConnection: (connection: Connection) => void;
  onReconnect: () => void;
};

export function ConversationView(props: Props) {
  return (
    <Suspense fallback={<Loading />}>
      <LoadedConversation {...props} />
    </Suspense>
  );
}

function LoadedConversation({ place, agentClass, onConnection, onReconnect }: Props) {
  const conversation = useConversation(place);
  const { messages, connection, busy, running, waitsFor } = conversation;
  const { box, content, atEnd, toEnd } = useStickToBottom(messages.length > 0);

  const reason = connection.state === "refused" ? connection.reason : "";
  useEffect(() => {
    onConnection(connection.state === "refused" ? { state: "refused", reason } : { state: connection.state });
  }, [onConnection, connection.state, reason]);

  const send = (text: string) => {
    conversation.send(text);
    toEnd();
  };
  const refused = connection.state === "refused";
  return (
    <>
      <main className="scroller" ref={box}>
        <div ref={content} className="column">
          {messages.length > 0 ? (
            <AnswersProvider value={conversation.answers}>
              <Transcript messages={messages} running={running} connected={connection.state === "connected"} />
            </AnswersProvider>
          ) : <EmptyState agentClass={agentClass} onPick={send} disabled={refused} />}
        </div>
      </main>
      <div className="dock column">
        {!atEnd && (
          <button type="button" className="to-end" aria-label="Go to the latest message" data-testid="to-end" onClick={toEnd}>
            <Icon name="down" />
          </button>
        )}
        {refused && <ErrorBanner title="The server refused this conversation" text={reason} retry="Connect again" onRetry={onReconnect} />}
        {!refused && conversation.error && connection.state === "connected" && !busy && (
          <ErrorBanner
            title="The answer failed"
            text={conversation.error}
            retry="Try again"
            onRetry={conversation.retry}
            onDismiss={conversation.forget}
          />
        )}
        {conversation.notTaken !== null && (
          <ErrorBanner
            title="The agent was busy and did not take your message"
            text={conversation.notTaken}
            retry="Send again"
            onRetry={() => send(conversation.notTaken!)}
            onDismiss={conversation.forget}
          />
        )}
        <Toolbar conversation={conversation} />
        <Composer busy={busy} disabled={refused} waiting={waitsFor !== ""} onSend={send} onStop={conversation.stop} />
      </div>
    </>
  );
}
