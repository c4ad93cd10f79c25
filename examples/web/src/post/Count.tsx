const compact = new Intl.NumberFormat("en", { notation: "compact" });

/** The label of an action with an icon. Readers of screens hear its name, and everybody how often it was done. */
export function Count({ name, count }: { name: string; count: number }) {
  return (
    <span>
      <span className="visually-hidden">{name} </span>
      {count > 0 && compact.format(count)}
    </span>
  );
}
