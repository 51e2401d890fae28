import { Icon } from "./Icon";

type Props = { title: string; text: string; retry: string; onRetry: () => void; onDismiss?: () => void };

export function ErrorBanner({ title, text, retry, onRetry, onDismiss }: Props) {
  return (
    <div className="error-banner" role="alert" data-testid="error">
      <Icon name="alert" />
      <div className="error-text">
        <strong>{title}</strong>
        <p>{text}</p>
      </div>
      <button type="button" className="button" data-testid="retry" onClick={onRetry}>
        {retry}
      </button>
      {onDismiss && (
        <button type="button" className="icon-button" aria-label="Dismiss" data-testid="dismiss" onClick={onDismiss}>
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}
