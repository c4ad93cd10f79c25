import { Suspense, useRef } from "react";
import { graphql, useLazyLoadQuery } from "react-relay";
import { ErrorBoundary, useAttempt } from "../ui/ErrorBoundary";
import { Loading } from "../ui/Loading";
import { listPath, listsPath } from "../ui/router";
import type { ListTab } from "../ui/router";
import { DeleteList } from "./DeleteList";
import { ListMembers } from "./ListMembers";
import { ListPosts } from "./ListPosts";
import { RenameList } from "./RenameList";
import type { ListScreenQuery } from "./__generated__/ListScreenQuery.graphql";

const LISTS = { posts: ListPosts, members: ListMembers };
const NAMES = { posts: "Posts", members: "Members" };

/** A list: its timeline or its members, and the actions for it. */
export function ListScreen({ id, tab }: { id: string; tab: ListTab }) {
  const { viewer, node: list } = useLazyLoadQuery<ListScreenQuery>(
    graphql`
      query ListScreenQuery($id: ID!) {
        viewer {
          user {
            id
          }
        }
        node(id: $id) {
          __typename
          ... on UserList {
            id
            name
            membersCount
          }
        }
      }
    `,
    { id },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  const dialog = useRef<HTMLDialogElement>(null);
  if (!viewer) return null; // the session has just ended
  if (list?.__typename !== "UserList") {
    return (
      <div className="message">
        <title>List not found · Fanline</title>
        <h1>This list does not exist</h1>
        <p>It was deleted, or it belongs to another user.</p>
        <a href={listsPath}>Go to your lists</a>
      </div>
    );
  }
  const { name, membersCount } = list;
  const Content = LISTS[tab];
  return (
    <>
      <title>{`${name} · Lists · Fanline`}</title>
      <div className="heading">
        <h1>
          <bdi>{name}</bdi>
        </h1>
        <div className="heading-actions">
          <button className="link link-quiet" onClick={() => dialog.current?.showModal()}>
            Rename
          </button>
          <DeleteList listId={list.id} name={name} />
        </div>
      </div>
      <RenameList listId={list.id} name={name} dialog={dialog} />
      <nav className="tabs two" aria-label="List">
        <a href={listPath(id)} aria-current={tab === "posts" ? "page" : undefined}>
          Posts
        </a>
        <a href={listPath(id, "members")} aria-current={tab === "members" ? "page" : undefined}>
          <strong>{membersCount}</strong> {membersCount === 1 ? "member" : "members"}
        </a>
      </nav>
      <ErrorBoundary name={NAMES[tab]} key={tab}>
        <Suspense fallback={<Loading name={tab} />}>
          <Content listId={list.id} viewerId={viewer.user.id} />
        </Suspense>
      </ErrorBoundary>
    </>
  );
}
