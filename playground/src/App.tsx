import { useCallback, useEffect, useState } from "react";
import { ConversationView } from "./components/ConversationView";
import { Header } from "./components/Header";
import { Loading } from "./components/Loading";
import { Notice } from "./components/Notice";
import { type Catalog, loadCatalog } from "./lib/catalog";
import type { Connection } from "./lib/connection";
import { usePlace } from "./lib/usePlace";

/** The page: asks the server what it offers, then shows one conversation. */
export function App() {
  const [catalog, setCatalog] = useState<Catalog | null>(null);
  const [failure, setFailure] = useState<string | null>(null);

  const load = useCallback(() => {
    loadCatalog().then(setCatalog, (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)));
  }, []);
  useEffect(load, [load]);

  if (failure) {
    const retry = () => {
      setFailure(null);
      load();
    };
    return (
      <Notice title="The server does not answer" action="Try again" onAction={retry}>
        {failure}
      </Notice>
    );
  }
  if (!catalog) return <Loading />;
  if (catalog.agents.length === 0) {
    return <Notice title="No agents here">This server offers no agent class. Add one to its App and restart it.</Notice>;
  }
  return <Page catalog={catalog} />;
}

function Page({ catalog }: { catalog: Catalog }) {
  const [paths] = useState(() => catalog.agents.map((agent) => agent.path));
  const [place, go] = usePlace(paths);
  const [connection, setConnection] = useState<Connection>({ state: "connecting" });
  const [attempt, setAttempt] = useState(0);
  const reconnect = useCallback(() => setAttempt((n) => n + 1), []);

  return (
    <div className="page">
      <Header catalog={catalog} place={place} connection={connection} onGo={go} />
      {/* The key gives each conversation hooks of its own: nothing of one can show in another. */}
      <ConversationView
        key={`${place.agent}/${place.name}/${attempt}`}
        place={place}
        agentClass={catalog.agents.find((agent) => agent.path === place.agent)?.class ?? ""}
        onConnection={setConnection}
        onReconnect={reconnect}
      />
    </div>
  );
}
