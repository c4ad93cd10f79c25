import { useEffect, useRef, useState } from "react";

interface Entry {
  readonly id: string;
}

interface Held<E extends Entry> {
  /** The entries to show. */
  visible: readonly E[];
  /** The number of entries that are held back and announced. */
  count: number;
  /**
   * Hold back an arriving entry, unless it is already shown: a subscription repeats entries that a new page overwrites.
   */
  hold: (id: string, isAnnounced?: boolean) => void;
  showAll: () => void;
}

/**
 * Hold back entries that arrive while the user is reading, until the user asks for them, so that nothing moves.
 * `select` leaves out entries that are not shown at all.
 */
export function useHeld<E extends Entry>(entries: readonly E[], select: (entries: readonly E[]) => readonly E[] = all): Held<E> {
  const [held, setHeld] = useState<ReadonlyMap<string, boolean>>(new Map());
  const known = useRef(new Set<string>());
  const released = entries.filter(({ id }) => !held.has(id));

  useEffect(() => {
    known.current = new Set(released.map(({ id }) => id));
  });

  return {
    visible: select(released),
    count: select(entries).filter(({ id }) => held.get(id) === true).length,
    hold(id, isAnnounced = true) {
      if (!known.current.has(id)) setHeld((old) => new Map(old).set(id, isAnnounced));
    },
    showAll: () => setHeld(new Map()),
  };
}

function all<E>(entries: readonly E[]): readonly E[] {
  return entries;
}
