import { useEffect, useRef } from "react";
import type { FocusEvent, KeyboardEvent, RefObject } from "react";

interface Menu {
  ref: RefObject<HTMLDetailsElement | null>;
  close: () => void;
  onBlur: (event: FocusEvent) => void;
  onKeyDown: (event: KeyboardEvent) => void;
}

/**
 * Turn a `details` element into a menu, which also opens with the keyboard.
 *
 * The menu closes with Escape, which returns the focus to its button, and when the user clicks or tabs out of it.
 */
export function useMenu(): Menu {
  const ref = useRef<HTMLDetailsElement>(null);
  const close = (): void => {
    if (ref.current) ref.current.open = false;
  };
  const contains = (target: EventTarget | null): boolean => target instanceof Node && !!ref.current?.contains(target);

  useEffect(() => {
    const closeOutside = (event: PointerEvent): void => {
      if (!contains(event.target)) close();
    };
    document.addEventListener("pointerdown", closeOutside);
    return () => document.removeEventListener("pointerdown", closeOutside);
  }, []);

  return {
    ref,
    close,
    // Safari does not focus buttons that are clicked: then the focus goes nowhere, and the menu has to stay.
    onBlur: ({ relatedTarget }) => {
      if (relatedTarget && !contains(relatedTarget)) close();
    },
    onKeyDown: ({ key }) => {
      if (key !== "Escape" || !ref.current?.open) return;
      close();
      ref.current.querySelector("summary")?.focus();
    },
  };
}
