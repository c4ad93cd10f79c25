/** Whether a connection is lost, and the listeners for changes. */
export class Status {
  readonly #listeners = new Set<() => void>();
  #isLost = false;

  readonly isLost = (): boolean => this.#isLost;

  readonly set = (isLost: boolean): void => {
    this.#isLost = isLost;
    for (const listener of this.#listeners) listener();
  };

  /** Call a function at each change. Return a function that stops the calls. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}
