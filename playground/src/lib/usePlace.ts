import { useCallback, useEffect, useState } from "react";
import { type Place, placeUrl, readPlace, remember } from "./place";

/** The conversation in the address bar, and a way to go to another one. */
export function usePlace(agents: string[]): [Place, (to: Place) => void] {
  const [place, setPlace] = useState(() => readPlace(agents));

  useEffect(() => {
    history.replaceState(null, "", placeUrl(place));
    document.title = `${place.name} · perdure`;
    remember(place);
  }, [place]);

  useEffect(() => {
    const onBack = () => setPlace(readPlace(agents));
    addEventListener("popstate", onBack);
    return () => removeEventListener("popstate", onBack);
  }, [agents]);

  const go = useCallback((to: Place) => {
    history.pushState(null, "", placeUrl(to));
    setPlace(to);
  }, []);
  return [place, go];
}
