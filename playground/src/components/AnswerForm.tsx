import { type FormEvent, useId, useState } from "react";
import { useAnswers } from "../lib/answers";
import { DECLINED, isQuestion, type ToolPart } from "../lib/calls";
import { readAnswer } from "../lib/json";

type Props = { part: ToolPart; options: string[]; onAnswered: () => void };

/** Lets a person give the result of a call: one of the suggested answers, or a text of their own. */
export function AnswerForm({ part, options, onAnswered }: Props) {
  const { answer, decline } = useAnswers();
  const [text, setText] = useState("");
  const [sent, setSent] = useState(false);
  const id = useId();
  const asksPerson = isQuestion(part);

  const give = (act: () => void) => {
    setSent(true);
    act();
    onAnswered();
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) give(() => answer(part, asksPerson ? text.trim() : readAnswer(text.trim())));
  };
  return (
    <form className="answer" data-testid="answer-form" onSubmit={onSubmit}>
      {options.length > 0 && (
        <fieldset className="options" aria-label="Suggested answers">
          {options.map((option) => (
            <button
              key={option}
              type="button"
              className="button"
              data-testid="option"
              disabled={sent}
              onClick={() => give(() => answer(part, option))}
            >
              {option}
            </button>
          ))}
        </fieldset>
      )}
      <div className="decision">
        <label className="hidden" htmlFor={id}>
          Your answer
        </label>
        <input
          id={id}
          className="field"
          placeholder={asksPerson ? "Your answer" : "The tool's result, as JSON or text"}
          data-testid="answer"
          autoComplete="off"
          value={text}
          disabled={sent}
          onChange={(event) => setText(event.target.value)}
        />
        <button className="button primary" data-testid="answer-send" disabled={sent || !text.trim()}>
          Answer
        </button>
        <button
          type="button"
          className="button"
          data-testid="decline"
          disabled={sent}
          onClick={() => give(() => decline(part, DECLINED))}
        >
          Decline
        </button>
      </div>
    </form>
  );
}
