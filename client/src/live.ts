import { backoff } from "./pause.js";
import { failure } from "./problems.js";

/** The fields that `live` needs in each event of a timeline, a thread or the notifications. */
export interface LiveEvent {
  readonly __typename: string;
  readonly cursor: string;
}

export interface LiveSink<Event> {
  next(event: Event): void;
  error(problem: unknown): void;
  complete(): void;
}

export interface LiveOptions<Event extends LiveEvent> {
  /** The `liveCursor` of the first page that the cache holds. Without it, `refetch` is called first. */
  liveCursor?: string | null | undefined;
  /**
   * Fetch the first page from the network, put it into the cache, and return its `liveCursor`. If no cursor is
   * returned, the fetch counts as failed and is repeated later.
   */
  refetch(): Promise<string | null | undefined>;
  /** Subscribe from a cursor. Return a function that ends the subscription. */
  subscribe(after: string, sink: LiveSink<Event>): () => void;
  /**
   * Apply an event to the cache: a `PostAdded`, `RepostAdded`, `ReplyAdded`, `PostRemoved`, `RepostRemoved`,
   * `AuthorRemoved`, `AuthorHidden` or `NotificationAdded`.
   */
  apply?(event: Event): void;
  /**
   * Report the `liveCursor` of each first page that reaches the cache, whoever fetched it. Return a function that stops
   * the reports. Null, which later pages have, is ignored.
   */
  watchPages?(arrived: (liveCursor: string | null | undefined) => void): () => void;
  /** Called when the subscription cannot continue, such as after a log-out. */
  onEnd?(problem: unknown): void;
}

const APPLIED = new Set([
  ...["PostAdded", "RepostAdded", "ReplyAdded", "PostRemoved", "RepostRemoved", "AuthorRemoved", "AuthorHidden"],
  "NotificationAdded",
]);
const FETCHED = new Set(["AuthorAdded", "TimelineChanged", "NotificationsChanged", "Gap"]);
const FIRST_REPETITION = 1_000;
const LONGEST_REPETITION = 30_000;

/**
 * Keep a timeline, the replies of a thread or the notifications in a cache up to date. Return a function that ends the
 * updates.
 *
 * Events are applied as they arrive. After `AuthorAdded`, `TimelineChanged`, `NotificationsChanged` and `Gap`, the
 * first page is fetched; when it is in the cache, the subscription ends and another one starts from the page's
 * `liveCursor`, which repeats the changes that the page has overwritten. With `watchPages`, the same happens when a
 * page arrives that the application or its cache has fetched. Other events, such as `PostChanged`, need no action:
 * caches store the post that the event contains. Types of events that this version does not know are ignored.
 */
export function live<Event extends LiveEvent>(options: LiveOptions<Event>): () => void {
  const timeline = new LiveTimeline(options);
  timeline.start();
  return () => timeline.stop();
}

class LiveTimeline<Event extends LiveEvent> {
  readonly #options: LiveOptions<Event>;
  /** How often each event has caused a refetch: the server repeats `AuthorAdded` until timelines include the author. */
  readonly #causes = new Map<string, number>();
  #isStopped = false;
  #isFetching = false;
  /** The cursor of the last page that arrived during the fetch. */
  #arrived: string | undefined;
  #fetchTimer: ReturnType<typeof setTimeout> | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #fetchFailures = 0;
  #subscription = 0;
  #end: (() => void) | undefined;
  #unwatch: (() => void) | undefined;
  #cursor = "";

  constructor(options: LiveOptions<Event>) {
    this.#options = options;
  }

  start(): void {
    this.#unwatch = this.#options.watchPages?.((liveCursor) => this.#pageArrived(liveCursor));
    if (this.#options.liveCursor == null) void this.#refetch();
    else this.#listen(this.#options.liveCursor);
  }

  stop(): void {
    this.#isStopped = true;
    this.#unwatch?.();
    this.#subscription++;
    clearTimeout(this.#fetchTimer);
    clearTimeout(this.#retryTimer);
    this.#end?.();
  }

  /** End the current subscription, if there is one, and start another. */
  #listen(after: string): void {
    clearTimeout(this.#retryTimer);
    const number = ++this.#subscription;
    this.#end?.();
    this.#end = undefined;
    this.#cursor = after;
    const ifCurrent = (action: () => void): void => {
      if (number === this.#subscription) action();
    };
    const end = this.#options.subscribe(after, {
      next: (event) => ifCurrent(() => this.#take(event)),
      error: (problem) => ifCurrent(() => this.#listenLater(problem)),
      complete: () => ifCurrent(() => this.#listenLater(undefined)),
    });
    if (number === this.#subscription) this.#end = end;
    else end(); // it failed at once
  }

  #take(event: Event): void {
    if ((event as Partial<Event> | undefined)?.cursor == null) {
      this.#giveUp(new Error("The subscription must select cursor."));
      return;
    }
    this.#failures = 0;
    this.#cursor = event.cursor;
    if (FETCHED.has(event.__typename)) this.#refetchBecauseOf(event.cursor);
    else if (APPLIED.has(event.__typename)) this.#options.apply?.(event);
  }

  /**
   * End the failed or completed subscription, and schedule the next one. If the subscription were not ended, urql would
   * ignore the next one with the same cursor.
   */
  #listenLater(problem: unknown): void {
    this.#subscription++; // ignore what the failed subscription still reports
    this.#end?.();
    this.#end = undefined;
    const delay = delayAfter(problem, this.#failures++);
    if (delay === undefined) this.#giveUp(problem);
    else this.#retryTimer = setTimeout(() => this.#listen(this.#cursor), delay);
  }

  /** Fetch the page, unless it is already being fetched. If this event has caused a fetch before, wait first. */
  #refetchBecauseOf(cursor: string): void {
    if (this.#isFetching) return; // the new subscription repeats the event if the page is older
    const times = this.#causes.get(cursor) ?? 0;
    if (times > 0 && this.#fetchTimer !== undefined) return;
    this.#causes.set(cursor, times + 1);
    if (times === 0) void this.#refetch();
    else this.#refetchLater(Math.min(LONGEST_REPETITION, FIRST_REPETITION * 2 ** (times - 1)));
  }

  #pageArrived(liveCursor: string | null | undefined): void {
    if (this.#isStopped || liveCursor == null) return;
    if (this.#isFetching) this.#arrived = liveCursor; // it may be the page that is being fetched
    else this.#listen(liveCursor);
  }

  #takeArrived(): string | undefined {
    const arrived = this.#arrived;
    this.#arrived = undefined;
    return arrived;
  }

  #refetchLater(delay: number): void {
    this.#fetchTimer = setTimeout(() => void this.#refetch(), delay);
  }

  async #refetch(): Promise<void> {
    clearTimeout(this.#fetchTimer);
    this.#fetchTimer = undefined;
    this.#isFetching = true;
    try {
      const liveCursor = await this.#options.refetch();
      if (liveCursor == null) throw new Error("The page has no live cursor.");
      this.#isFetching = false;
      this.#fetchFailures = 0;
      const arrived = this.#takeArrived();
      if (!this.#isStopped) this.#listen(arrived ?? liveCursor);
    } catch (problem) {
      this.#isFetching = false;
      const arrived = this.#takeArrived();
      if (this.#isStopped) return;
      if (arrived !== undefined) this.#listen(arrived);
      const delay = delayAfter(problem, this.#fetchFailures++);
      if (delay === undefined) this.#giveUp(problem);
      else this.#refetchLater(delay);
    }
  }

  #giveUp(problem: unknown): void {
    this.stop();
    this.#options.onEnd?.(problem);
  }
}

/** Return the milliseconds to wait before the next attempt, or undefined if it cannot succeed. */
function delayAfter(problem: unknown, failures: number): number | undefined {
  const { retryAfter, canRetry } = failure(problem);
  if (!canRetry) return undefined;
  const delay = backoff(failures);
  return retryAfter === undefined ? delay : Math.max(delay, retryAfter * 1_000 * (1 + Math.random()));
}
