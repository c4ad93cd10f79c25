import { ArrowUpIcon } from "../ui/icons";

/** A button that shows the posts which have arrived. Readers of screens hear its text when it changes. */
export function NewPosts({ count, onShow }: { count: number; onShow: () => void }) {
  return (
    <div className="pill-place" aria-live="polite">
      {count > 0 && (
        <button className="pill" onClick={onShow}>
          <ArrowUpIcon />
          {count === 1 ? "1 new post" : `${String(count)} new posts`}
        </button>
      )}
    </div>
  );
}
