const compact = new Intl.NumberFormat("en", { notation: "compact" });

/** The label of an action with an icon. The name is only for screen readers; the count is for everyone. */
export function Count({ name, count }: { name: string; count: number }) {
  return (
    <span>
      <span className="visually-hidden">{name} </span>
      {count > 0 && compact.format(count)}
    </span>
  );
}
