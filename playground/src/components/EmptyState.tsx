const EXAMPLES = ["What's the weather in Paris?", 'call roll_dice {"sides": 20}', "long 300", "help"];

/** What a conversation without messages shows: a way to begin. */
export function EmptyState({ onPick, disabled }: { onPick: (text: string) => void; disabled: boolean }) {
  return (
    <section className="empty" data-testid="empty">
      <h2>Start a conversation</h2>
      <p>
        Reload in mid-answer, open a second tab, restart the server: the conversation goes on. These suit the built-in demo
        model:
      </p>
      <ul>
        {EXAMPLES.map((text) => (
          <li key={text}>
            <button type="button" disabled={disabled} data-testid="example" onClick={() => onPick(text)}>
              {text}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
