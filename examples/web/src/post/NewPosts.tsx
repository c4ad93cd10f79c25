import { ArrowUpIcon } from "../ui/icons";

interface Props {
  count: number;
  onShow: () => void;
  words?: readonly [one: string, several: string];
}

/** A button that shows the posts that have arrived. Screen readers announce its text when it changes. */
export function NewPosts({ count, onShow, words: [one, several] = ["post", "posts"] }: Props) {
  return (
    <div className="pill-place" aria-live="polite">
      {count > 0 && (
        <button className="pill" onClick={onShow}>
          <ArrowUpIcon />
          {count === 1 ? `1 new ${one}` : `${String(count)} new ${several}`}
        </button>
      )}
    </div>
  );
}
