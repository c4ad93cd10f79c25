import { Suspense, useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { graphql, useFragment, useLazyLoadQuery } from "react-relay";
import { ErrorBoundary, useAttempt } from "../ui/ErrorBoundary";
import { CloseIcon } from "../ui/icons";
import { Loading } from "../ui/Loading";
import { listPath } from "../ui/router";
import { MemberButton } from "./MemberButton";
import { NewList } from "./NewList";
import type { ListPickerQuery } from "./__generated__/ListPickerQuery.graphql";
import type { ListPicker_user$key } from "./__generated__/ListPicker_user.graphql";

/** A menu item that opens a dialog in which the viewer adds a user to lists. */
export function ListPicker({ user }: { user: ListPicker_user$key }) {
  const { id, login } = useFragment(
    graphql`
      fragment ListPicker_user on User {
        id
        login
      }
    `,
    user,
  );
  const [isOpen, setIsOpen] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const close = (): void => dialog.current?.close();

  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    addEventListener("hashchange", close);
    return () => removeEventListener("hashchange", close);
  }, [isOpen]);

  return (
    <>
      <button aria-haspopup="dialog" onClick={() => setIsOpen(true)}>
        Add to lists
      </button>
      {isOpen &&
        createPortal(
          <dialog ref={dialog} aria-labelledby="lists-title" className="card picker" onClose={() => setIsOpen(false)}>
            <header>
              <h2 id="lists-title">Add @{login} to lists</h2>
              <button className="icon" aria-label="Close" onClick={close}>
                <CloseIcon />
              </button>
            </header>
            <ErrorBoundary name="Your lists">
              <Suspense fallback={<Loading name="lists" rows={1} />}>
                <Lists userId={id} login={login} />
              </Suspense>
            </ErrorBoundary>
          </dialog>,
          document.body, // a menu that closes would hide it
        )}
    </>
  );
}

/** The viewer's lists. The API does not report which of them contain a user; a list created here contains the user. */
function Lists({ userId, login }: { userId: string; login: string }) {
  const { viewer } = useLazyLoadQuery<ListPickerQuery>(
    graphql`
      query ListPickerQuery {
        viewer {
          lists {
            id
            name
          }
        }
      }
    `,
    {},
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  const [created, setCreated] = useState<ReadonlySet<string>>(new Set());
  if (!viewer?.lists) throw new Error("The server did not return the lists.");
  return (
    <>
      <NewList userIds={[userId]} onCreated={(id) => setCreated((old) => new Set(old).add(id))} />
      <ul className="picker-lists" aria-label="Lists">
        {viewer.lists.map(({ id, name }) => (
          <li key={id} className="picker-list">
            <a href={listPath(id)}>
              <bdi>{name}</bdi>
            </a>
            <MemberButton
              key={String(created.has(id))}
              listId={id}
              userId={userId}
              login={login}
              listName={name}
              isMember={created.has(id)}
            />
          </li>
        ))}
      </ul>
    </>
  );
}
