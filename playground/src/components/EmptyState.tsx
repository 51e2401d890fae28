import { introductionTo } from "../lib/suggestions";

type Props = { agentClass: string; onPick: (text: string) => void; disabled: boolean };

/** What a conversation without messages shows: a way to begin. */
export function EmptyState({ agentClass, onPick, disabled }: Props) {
  const { about, suggestions } = introductionTo(agentClass);
  return (
    <section className="empty" data-testid="empty">
      <h2>Start a conversation</h2>
      <p>{about}</p>
      <ul>
        {suggestions.map(({ text, shows }) => (
          <li key={text}>
            <button type="button" disabled={disabled} data-testid="example" onClick={() => onPick(text)}>
              {text}
              <small>{shows}</small>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
