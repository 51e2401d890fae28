import type { Catalog } from "../lib/catalog";
import type { Connection } from "../lib/connection";
import { freshName } from "../lib/names";
import { type Place, placeUrl } from "../lib/place";
import { AgentPicker } from "./AgentPicker";
import { ConnectionStatus } from "./ConnectionStatus";
import { ConversationName } from "./ConversationName";
import { Icon } from "./Icon";

type Props = { catalog: Catalog; place: Place; connection: Connection; onGo: (to: Place) => void };

export function Header({ catalog, place, connection, onGo }: Props) {
  return (
    <header className="header">
      <div className="brand">
        <img src="/favicon.svg" alt="" width="26" height="26" />
        <h1>perdure</h1>
        <span className="version">{catalog.version}</span>
      </div>
      <nav className="place" aria-label="Conversation">
        <AgentPicker agents={catalog.agents} path={place.agent} onPick={(agent) => onGo({ ...place, agent })} />
        <span className="slash" aria-hidden="true">
          /
        </span>
        <ConversationName key={place.name} name={place.name} onRename={(name) => onGo({ ...place, name })} />
        <button
          type="button"
          className="icon-button"
          title="New conversation"
          aria-label="New conversation"
          data-testid="new-conversation"
          onClick={() => onGo({ ...place, name: freshName() })}
        >
          <Icon name="plus" />
        </button>
        <a
          className="icon-button"
          href={placeUrl(place)}
          target="_blank"
          rel="noreferrer"
          title="Open this conversation in another tab"
          aria-label="Open this conversation in another tab"
          data-testid="open-tab"
        >
          <Icon name="external" />
        </a>
      </nav>
      <ConnectionStatus connection={connection} />
    </header>
  );
}
