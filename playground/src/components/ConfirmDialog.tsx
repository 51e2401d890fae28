import { useEffect, useRef } from "react";

type Props = { title: string; text: string; confirm: string; onConfirm: () => void; onClose: () => void };

/** Asks before something that cannot be undone. Escape and Cancel leave things as they are. */
export function ConfirmDialog({ title, text, confirm, onConfirm, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);

  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="dialog-title" data-testid="dialog" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      <p>{text}</p>
      <form method="dialog">
        <button className="button" data-testid="dialog-cancel">
          Cancel
        </button>
        <button className="button danger" data-testid="dialog-confirm" onClick={onConfirm}>
          {confirm}
        </button>
      </form>
    </dialog>
  );
}
