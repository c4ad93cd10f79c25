import { lazy } from "react";
import type { ComponentType, LazyExoticComponent } from "react";

/** The code of a screen did not arrive: the server does not answer, or it has a newer version of the app. */
export class MissingCode extends Error {}

/** Return a component whose code is loaded when it is first shown. */
export function lazily<P>(load: () => Promise<ComponentType<P>>): LazyExoticComponent<ComponentType<P>> {
  return lazy(async () => {
    try {
      return { default: await load() };
    } catch (problem) {
      throw new MissingCode("The code of a screen could not be loaded.", { cause: problem });
    }
  });
}

/**
 * Reload the page if the server answers; otherwise leave it as it is.
 *
 * A newer version of the app has different file names, and some browsers do not fetch a module again after a failure.
 */
export async function reloadPage(): Promise<void> {
  const response = await fetch(location.href, { method: "HEAD" }).catch(() => undefined);
  if (response?.ok) location.reload();
}
