// The bar above GraphiQL: a menu of the examples and, in the demo, a menu of the users to log in as.
import { element } from "./dom.js";

/** Fill the bar with its menus. */
export function createBar(bar, { examples, users, session, logIn, show }) {
  const heading = bar.querySelector("h1");
  const status = element("p", { className: "visually-hidden", role: "status" });
  bar.replaceChildren(heading, exampleMenu(), ...(users.length ? [userMenu()] : []), status);

  function exampleMenu() {
    const groups = groupBy(examples);
    const sections = [...groups].map(([group, members], index) => {
      const heading = element("h2", { id: `group-${index}`, textContent: group });
      const list = element("ul", {}, members.map((example) => element("li", {}, [exampleButton(example)])));
      list.setAttribute("aria-labelledby", heading.id);
      return element("section", {}, [heading, list]);
    });
    return menu("examples", [element("span", { textContent: "Examples" })], sections);
  }

  function exampleButton(example) {
    const words = example.operation.split(/(?<=[a-z])(?=[A-Z])/);
    const title = [words[0], ...words.slice(1).map((word) => word.toLowerCase())].join(" ");
    return item([title, example.about], async () => {
      // The ids in the variables change with the user and with what the examples did.
      if (session.login) await logIn(session.login).catch(() => {});
      await show(example);
    });
  }

  function userMenu() {
    const label = element("span", { className: "user" });
    const buttons = [...users, { login: null, name: "Nobody", bio: "Send requests without a token." }].map((user) => {
      const name = user.login ? `${user.name} @${user.login}` : user.name;
      const button = item([name, user.bio], async () => {
        try {
          await logIn(user.login);
          status.className = "visually-hidden"; // the label of the menu shows it
          status.textContent = user.login ? `You are logged in as ${user.name}.` : "You are logged out.";
        } catch (error) {
          status.className = "failure";
          status.textContent = `You cannot log in. ${error.message}`;
        }
        update();
      });
      button.dataset.login = user.login ?? "";
      return button;
    });
    const update = () => {
      const user = users.find(({ login }) => login === session.login);
      label.textContent = user ? user.name : "Nobody";
      for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.login === (session.login ?? ""));
    };
    update();
    const list = element("ul", {}, buttons.map((button) => element("li", {}, [button])));
    const prefix = element("span", { className: "prefix", textContent: "Logged in as " });
    return menu("users", [element("span", {}, [prefix, label])], [element("section", {}, [list])]);
  }
}

/** Return a menu that closes when an entry is chosen, when the focus leaves it, and on Escape. */
function menu(name, label, sections) {
  const summary = element("summary", {}, label);
  const details = element("details", { className: `menu ${name}` }, [
    summary,
    element("div", { className: "panel" }, [element("div", { className: "groups" }, sections)]),
  ]);
  const close = () => (details.open = false);
  details.addEventListener("click", (event) => event.target.closest("button") && (close(), summary.focus()));
  details.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !details.contains(event.relatedTarget)) close();
  });
  details.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && details.open) (close(), summary.focus());
  });
  document.addEventListener("pointerdown", (event) => details.contains(event.target) || close());
  return details;
}

function item([title, about], choose) {
  const button = element("button", { type: "button" }, [
    element("strong", { textContent: title }),
    element("span", { textContent: about }),
  ]);
  button.addEventListener("click", choose);
  return button;
}

function groupBy(examples) {
  const groups = new Map();
  for (const example of examples) groups.set(example.group, [...(groups.get(example.group) ?? []), example]);
  return groups;
}
