// Resumes a client of graphql-ws or graphql-sse after the last event, with any library.

/** Let a client send, each time it connects again, the cursor of the last event as the variable `after`. */
export function resuming(client) {
  return {
    ...client,
    subscribe(request, sink) {
      const variables = { ...request.variables };
      return client.subscribe(
        { ...request, variables },
        {
          next(result) {
            for (const event of Object.values(result.data ?? {})) if (event?.cursor) variables.after = event.cursor;
            sink.next(result);
          },
          error: (problem) => sink.error(problem),
          complete: () => sink.complete(),
        },
      );
    },
  };
}

/** Wait before the next attempt: twice as long each time, up to half a minute, and not all clients at once. */
export function pause(attempts) {
  const most = Math.min(30_000, 250 * 2 ** attempts);
  return new Promise((resolve) => setTimeout(resolve, most * (0.5 + Math.random() / 2)));
}
