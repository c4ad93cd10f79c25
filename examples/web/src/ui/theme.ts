import { useSyncExternalStore } from "react";

const KEY = "fanline-theme";
const CHOSEN = "fanline-theme";
const DARK = "(prefers-color-scheme: dark)";

export type Theme = "light" | "dark";

/** Return the theme that the user has chosen, or that of the system. */
function currentTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia(DARK).matches ? "dark" : "light";
}

export function applyTheme(): void {
  const stored = localStorage.getItem(KEY);
  if (stored) document.documentElement.dataset.theme = stored;
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
  dispatchEvent(new Event(CHOSEN));
}

/** Return the theme, and follow changes that the user makes here or in the system. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, currentTheme);
}

function subscribe(listener: () => void): () => void {
  const system = matchMedia(DARK);
  addEventListener(CHOSEN, listener);
  system.addEventListener("change", listener);
  return () => {
    removeEventListener(CHOSEN, listener);
    system.removeEventListener("change", listener);
  };
}
