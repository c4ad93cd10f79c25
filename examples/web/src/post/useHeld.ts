import { useEffect, useRef, useState } from "react";

interface Edge {
  readonly node: { readonly id: string };
}

interface Held<E extends Edge> {
  /** The posts to show. */
  visible: readonly E[];
  /** How many others there are. */
  count: number;
  /** Hold a post back that arrives, unless it is on the screen: a subscription repeats what a new page overwrites. */
  hold: (id: string) => void;
  showAll: () => void;
}

/** Hold posts back that arrive while the user reads, until the user asks for them, so that nothing moves. */
export function useHeld<E extends Edge>(edges: readonly E[]): Held<E> {
  const [held, setHeld] = useState<ReadonlySet<string>>(new Set());
  const shown = useRef(new Set<string>());
  const visible = edges.filter(({ node }) => !held.has(node.id));

  useEffect(() => {
    shown.current = new Set(visible.map(({ node }) => node.id));
  });

  return {
    visible,
    count: edges.length - visible.length,
    hold(id) {
      if (!shown.current.has(id)) setHeld((old) => new Set(old).add(id));
    },
    showAll: () => setHeld(new Set()),
  };
}
