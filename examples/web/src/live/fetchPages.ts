import { liveCursorOf } from "@fanline/client/relay";
import type { GraphQLTaggedNode } from "react-relay";
import type { Environment, OperationType } from "relay-runtime";
import { fetchPage } from "./fetchPage";

/** The size of the first page of most lists. */
export const PAGE = 20;
const MOST = 100;
const LARGEST_PAGE = 50;

interface PageInfo {
  readonly hasNextPage: boolean;
  readonly endCursor: string | null | undefined;
}

/** A query for any page of a list: `after` is null for the first page. It has the directive `@raw_response_type`. */
interface PageOperation extends OperationType {
  readonly variables: { readonly count: number; readonly after?: string | null | undefined };
}

interface Options<Q extends PageOperation> {
  environment: Environment;
  query: GraphQLTaggedNode;
  /** The other variables of the query. */
  variables?: Omit<Q["variables"], "count" | "after">;
  connection: string;
  /** The size of the first page, and how many entries are fetched at most. */
  page?: number;
  most?: number;
  pageInfo: (data: NonNullable<Q["rawResponse"]>) => PageInfo | null | undefined;
}

/**
 * Fetch as many entries as the list has, write them all into the store at once, and return the cursor of the first
 * page.
 *
 * A response without the list is written into the store, too, so that the screen can say that its owner is gone.
 */
export async function fetchPages<Q extends PageOperation>(options: Options<Q>): Promise<string | undefined> {
  const { environment, query, variables, connection, page = PAGE, most = MOST, pageInfo } = options;
  const commits: (() => void)[] = [];
  let last: PageInfo | null | undefined;
  let fetched = 0;
  do {
    const missing = Math.min(lengthOf(environment, connection), most) - fetched; // the user can keep scrolling meanwhile
    const count = Math.min(last ? missing : Math.max(missing, page), LARGEST_PAGE);
    if (count <= 0) break;
    const { data, commit } = await fetchPage<Q>(environment, query, { ...variables, count, after: last?.endCursor });
    last = pageInfo(data);
    commits.push(commit);
    fetched += count;
  } while (last?.hasNextPage && last.endCursor);
  for (const commit of commits) commit();
  if (!last) throw new Error("The server did not return the list.");
  return liveCursorOf(environment, connection);
}

function lengthOf(environment: Environment, list: string): number {
  const { edges } = (environment.getStore().getSource().get(list) ?? {}) as { edges?: { __refs: unknown[] } };
  return edges?.__refs.length ?? 0;
}
