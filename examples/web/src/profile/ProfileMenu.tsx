import { graphql, useFragment } from "react-relay";
import { ListPicker } from "../lists/ListPicker";
import { MoreIcon } from "../ui/icons";
import { useMenu } from "../ui/useMenu";
import { BlockButton } from "./BlockButton";
import { MuteButton } from "./MuteButton";
import type { ProfileMenu_user$key } from "./__generated__/ProfileMenu_user.graphql";

/** Actions on a user that viewers rarely need. */
export function ProfileMenu({ user }: { user: ProfileMenu_user$key }) {
  const data = useFragment(
    graphql`
      fragment ProfileMenu_user on User {
        name
        ...ListPicker_user
        ...MuteButton_user
        ...BlockButton_user
      }
    `,
    user,
  );
  const { close, ...menu } = useMenu();

  /** Close the menu before its item acts: a dialog returns the focus to where it was. */
  function leave() {
    close();
    menu.ref.current?.querySelector("summary")?.focus();
  }

  return (
    <details className="menu" {...menu}>
      <summary className="icon" aria-label={`More about ${data.name}`}>
        <MoreIcon />
      </summary>
      <div className="menu-items" onClickCapture={leave}>
        <ListPicker user={data} />
        <MuteButton user={data} />
        <BlockButton user={data} />
      </div>
    </details>
  );
}
