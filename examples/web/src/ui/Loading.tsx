/** A placeholder for content that is being loaded. */
export function Loading({ name, rows = 4 }: { name: string; rows?: number }) {
  return (
    <div className="loading" role="status" aria-label={`Loading ${name}`}>
      {Array.from({ length: rows }, (_, row) => (
        <div className="skeleton" key={row} aria-hidden="true">
          <span className="skeleton-face" />
          <span className="skeleton-lines">
            <span />
            <span />
          </span>
        </div>
      ))}
    </div>
  );
}
