import { graphql, useFragment, useMutation } from "react-relay";
import { forgetDrafts } from "../post/draft";
import { sessionChangedEverywhere } from "../session/changes";
import { Avatar } from "../ui/Avatar";
import { blockedPath, listsPath, mutedPath, profilePath, sessionsPath } from "../ui/router";
import { useToast } from "../ui/Toasts";
import { useMenu } from "../ui/useMenu";
import type { AccountMenuLogOutMutation } from "./__generated__/AccountMenuLogOutMutation.graphql";
import type { AccountMenu_viewer$key } from "./__generated__/AccountMenu_viewer.graphql";

export function AccountMenu({ viewer }: { viewer: AccountMenu_viewer$key }) {
  const user = useFragment(
    graphql`
      fragment AccountMenu_viewer on User {
        id
        login
        name
        ...Avatar_user
      }
    `,
    viewer,
  );
  const [logOut, isLoggingOut] = useMutation<AccountMenuLogOutMutation>(graphql`
    mutation AccountMenuLogOutMutation($input: LogOutInput!) {
      logOut(input: $input) {
        userErrors {
          message
        }
      }
    }
  `);
  const toast = useToast();
  const { close, ...menu } = useMenu();

  function leave(everywhere: boolean) {
    logOut({
      variables: { input: { everywhere } },
      onCompleted() {
        forgetDrafts(user.id);
        sessionChangedEverywhere();
      },
      onError: () => toast("You are still logged in: the server does not answer. Try again."),
    });
  }

  return (
    <details className="menu" {...menu}>
      <summary aria-label={`Account of ${user.name}`}>
        <Avatar user={user} />
      </summary>
      <div className="menu-items">
        <a href={profilePath(user.login)} onClick={close}>
          <strong>
            <bdi>{user.name}</bdi>
          </strong>
          <span>@{user.login}</span>
        </a>
        <a href={listsPath} onClick={close}>
          Your lists
        </a>
        <a href={sessionsPath} onClick={close}>
          Settings
        </a>
        <a href={mutedPath} onClick={close}>
          Muted users
        </a>
        <a href={blockedPath} onClick={close}>
          Blocked users
        </a>
        <button disabled={isLoggingOut} onClick={() => leave(false)}>
          Log out
        </button>
        <button disabled={isLoggingOut} onClick={() => leave(true)}>
          Log out on all devices
        </button>
      </div>
    </details>
  );
}
