// Loads GraphiQL, and starts it with the example operations and, in the demo, as one of its users.
import { createBar } from "./bar.js";
import { element } from "./dom.js";
import { renderGraphiQL } from "./graphiql.js";

const LOAD_SECONDS = 20;
const root = document.getElementById("playground");

/** Load a script or style sheet; the browser checks its hash. Rejects if it cannot be loaded in time. */
function load({ url, integrity }) {
  const isStyle = url.endsWith(".css");
  const tag = document.createElement(isStyle ? "link" : "script");
  Object.assign(tag, { integrity, crossOrigin: "anonymous" });
  Object.assign(tag, isStyle ? { rel: "stylesheet", href: url } : { async: false, src: url });
  return new Promise((resolve, reject) => {
    const fail = () => {
      tag.remove(); // so that the next attempt loads it again
      reject(new AssetError(new URL(url, location.href)));
    };
    const timer = setTimeout(fail, LOAD_SECONDS * 1000);
    tag.addEventListener("load", () => (clearTimeout(timer), resolve()));
    tag.addEventListener("error", () => (clearTimeout(timer), fail()));
    // Before the playground's style sheet, which changes some of GraphiQL's rules.
    if (isStyle) document.head.prepend(tag);
    else document.head.append(tag);
  });
}

class AssetError extends Error {
  constructor({ origin, host }) {
    super(`The files of GraphiQL cannot be loaded from ${host}.`);
    this.isRemote = origin !== location.origin;
  }
}

async function getJson(path) {
  const response = await fetch(path).catch(() => {
    throw new Error("The server does not answer.");
  });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `The server answers with status ${response.status}.`);
  return body;
}

/** Show what is wrong and what to do, with a button that tries again. */
function showFailure(error) {
  const message = element("section", { className: "message", role: "alert" }, [
    element("h2", { textContent: "The playground cannot start" }),
    element("p", { textContent: error.message }),
    ...(error.isRemote ? adviceOnAssets() : [element("p", { textContent: "Check that the server is running and that no browser extension blocks scripts." })]),
    element("p", {}, ["The API works without the playground: send requests to ", code("/graphql"), "."]),
  ]);
  const retry = element("button", { type: "button", textContent: "Try again" });
  retry.addEventListener("click", start);
  message.append(retry);
  root.replaceChildren(message);
  retry.focus();
}

function adviceOnAssets() {
  return [
    element("p", {
      textContent: "Check your internet connection, and look for browser extensions that block scripts.",
    }),
    element("p", {}, ["To work offline, run ", code("fanline playground-assets"), " once while online, and restart the server."]),
  ];
}

function code(textContent) {
  return element("code", { textContent });
}

async function start() {
  root.replaceChildren(element("p", { className: "message", role: "status", textContent: "Loading…" }));
  try {
    const assets = JSON.parse(root.dataset.assets);
    const missing = window.GraphiQL ? [] : assets;
    const [{ examples, opened, users }] = await Promise.all([getJson("playground/start.json"), ...missing.map(load)]);
    const session = { login: null, token: null, variables: {} };
    const logIn = async (login) => {
      const anonymous = { login: null, token: null, variables: {} };
      Object.assign(session, login ? await getJson(`playground/session.json?login=${encodeURIComponent(login)}`) : anonymous);
    };
    if (users.length) await logIn(users[0].login);
    const show = renderGraphiQL(root, { examples, opened, session, isDemo: users.length > 0 });
    createBar(document.getElementById("bar"), { examples, users, session, logIn, show });
  } catch (error) {
    showFailure(error);
  }
}

start();
