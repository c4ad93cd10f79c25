import { createContext, useCallback, useContext, useEffect, useEffectEvent, useState } from "react";
import type { ReactNode } from "react";
import { CloseIcon } from "./icons";

const SECONDS = 6;
const MOST = 3;
const FRESH = 1_000; // milliseconds; a younger notice survives a change of screen, which may have caused it

interface Toast {
  key: number;
  since: number;
  content: ReactNode;
}

const Show = createContext<(content: ReactNode) => void>(() => undefined);

/** Return a function that shows a short notice. */
export function useToast(): (content: ReactNode) => void {
  return useContext(Show);
}

let last = 0;

/** Notices disappear after some seconds, or with the screen on which they appeared. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const show = useCallback((content: ReactNode) => {
    setToasts((shown) => [...shown.slice(1 - MOST), { key: ++last, since: Date.now(), content }]);
  }, []);

  useEffect(() => {
    const keepFresh = (): void => setToasts((shown) => shown.filter(({ since }) => since > Date.now() - FRESH));
    addEventListener("hashchange", keepFresh);
    return () => removeEventListener("hashchange", keepFresh);
  }, []);

  return (
    <Show value={show}>
      {children}
      <div className="toasts" role="status">
        {toasts.map(({ key, content }) => (
          <Notice key={key} onEnd={() => setToasts((shown) => shown.filter((toast) => toast.key !== key))}>
            {content}
          </Notice>
        ))}
      </div>
    </Show>
  );
}

/** A notice, which stays while the pointer or the focus is on it. */
function Notice({ children, onEnd }: { children: ReactNode; onEnd: () => void }) {
  const [isHeld, setIsHeld] = useState(false);
  const end = useEffectEvent(onEnd);

  useEffect(() => {
    if (isHeld) return undefined;
    const timer = setTimeout(() => end(), SECONDS * 1_000);
    return () => clearTimeout(timer);
  }, [isHeld]);

  return (
    <div
      className="toast"
      onPointerEnter={() => setIsHeld(true)}
      onPointerLeave={() => setIsHeld(false)}
      onFocus={() => setIsHeld(true)}
      onBlur={() => setIsHeld(false)}
    >
      <p>{children}</p>
      <button className="icon" aria-label="Dismiss" onClick={onEnd}>
        <CloseIcon />
      </button>
    </div>
  );
}
