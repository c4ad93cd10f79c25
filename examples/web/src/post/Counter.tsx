import { charactersLeft } from "./length";

const WARNING = 100;

/** Show how many characters are left if they are few. Screen readers announce it in steps, not at each letter. */
export function Counter({ text }: { text: string }) {
  const left = charactersLeft(text);
  const isTooLong = left < 0;
  return (
    <>
      <span className={isTooLong ? "counter danger" : "counter quiet"} aria-hidden={!isTooLong}>
        {left <= WARNING && describe(left)}
      </span>
      <span className="visually-hidden" aria-live="polite">
        {left <= WARNING && !isTooLong && `Fewer than ${describe(Math.ceil((left + 1) / 20) * 20)}`}
        {isTooLong && "The text is too long."}
      </span>
    </>
  );
}

function describe(left: number): string {
  const count = Math.abs(left);
  return `${String(count)} ${count === 1 ? "character" : "characters"} ${left < 0 ? "too many" : "left"}`;
}
