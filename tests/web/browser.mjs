// Drives pages of the web app in Chromium, for one connection to a Unix socket after the other: node browser.mjs SOCKET
// Each line of a connection is a command, and is answered with a line. Its pages are closed with it.
import { on } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import axe from "axe-core";
import { chromium } from "playwright-core";

const TIMEOUT = 50_000;
const STEPS = [10, 20, 50, 100]; // milliseconds between looks at a page, which cost computation; then always the last
const PATIENCE = 10_000; // milliseconds until a list that does not grow is complete; busy machines take seconds
const PICTURE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="360"><rect width="640" height="360" fill="#7a9"/></svg>';
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    ...["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
    ...["--disable-site-isolation-trials", "--process-per-site", "--renderer-process-limit=1"], // start fewer processes
  ],
});
browser.on("disconnected", () => process.exit()); // the next test starts another
const BLANK = "about:blank";
const EVENTS = ["pageerror", "console", "dialog", "response", "websocket"];
const contexts = new Map();
const unused = { phone: [], desktop: [] };
const pages = new Map();
const received = new Map();
const errors = [];

/** Find an element as the user of a screen reader does: by its role and name. */
const find = (page, { role, name, exact = true, pressed, disabled }) =>
  page.getByRole(role, { name, exact, pressed, disabled }).first();

/**
 * Let nothing move or fade any more: a colour that is measured meanwhile is none of the style sheet's.
 * The media feature ends most animations, also those of what appears later; the others are awaited.
 */
async function rest(page) {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.evaluate(async () => {
    const running = () => document.getAnimations().filter(({ playState }) => playState === "running");
    while (running().length) await Promise.allSettled(running().map(({ finished }) => finished));
  });
}

/** Wait until a condition holds. Playwright's own waits look only twice a second. */
async function until(holds) {
  const end = Date.now() + TIMEOUT;
  for (let looks = 0; !(await holds()); looks += 1) {
    if (Date.now() > end) throw new Error("it took too long");
    await new Promise((resolve) => setTimeout(resolve, STEPS[looks] ?? STEPS.at(-1)));
  }
}

/** Let a function answer the requests of an operation. */
const intercept = (page, operation, answer) =>
  page.route("**/graphql", (route) =>
    route.request().postDataJSON()?.operationName === operation ? answer(route) : route.fallback(),
  );

/** Show a tab, if another one of the same window is before it: there, Chromium draws once a second. */
async function show(page) {
  if (page.context().pages().length > 1) await page.bringToFront();
}

/** Responses that are held back, as functions that let them go. */
const held = [];

const actions = {
  /** Open a page. Pages with the same user share their cookies, as tabs do. */
  async open({ page: name, user, url, cookie, width = 1100, height = 800, dark = false }) {
    const kind = width < 600 ? "phone" : "desktop";
    if (!contexts.has(user)) {
      const context = unused[kind].pop() ?? (await browser.newContext({ hasTouch: kind === "phone" }));
      contexts.set(user, Object.assign(context, { kind }));
    }
    const context = contexts.get(user);
    if (cookie) await context.addCookies([cookie]);
    const [left] = context.pages().filter((each) => each.url() === BLANK);
    const page = left ?? (await context.newPage());
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
    page.setDefaultTimeout(TIMEOUT);
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().includes("Failed to load resource")) errors.push(message.text());
    });
    page.on("dialog", (dialog) => dialog.accept());
    const texts = [];
    received.set(page, texts);
    page.on("response", (response) => {
      if (response.url().endsWith("/graphql")) response.text().then((text) => texts.push(text), () => undefined);
    });
    page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => texts.push(String(payload))));
    pages.set(name, page);
    await page.goto(url);
  },
  async click(page, what) {
    await actions.see(page, what);
    await show(page);
    await find(page, what).click();
  },
  async menu(page, { within = ".bar" }) {
    await show(page);
    await page.locator(`${within} .menu summary`).click();
  },
  async fill(page, { label, text }) {
    const field = page.getByLabel(label, { exact: true });
    await until(() => field.isVisible());
    await field.fill(text);
  },
  press: (page, { key }) => page.keyboard.press(key),
  /** Open a route, and wait until the app shows it: the screen before it has nothing to do with what follows. */
  go: (page, { hash }) =>
    page.evaluate((to) => {
      if (location.hash === to) return undefined;
      return new Promise((resolve) => {
        addEventListener("hashchange", () => requestAnimationFrame(resolve), { once: true });
        location.hash = to;
      });
    }, hash),
  count: (page, { role }) => page.getByRole(role).count(),
  see: (page, what) => until(() => find(page, what).isVisible()),
  read: (page, { text }) => until(() => page.getByText(text).filter({ visible: true }).first().isVisible()),
  /**
   * Wait until no element that is displayed has a text. The `innerText` of the page would not do: it leaves out the items
   * with `content-visibility` that are off the screen, also those that have been scrolled to since the last frame.
   */
  missing: (page, { text }) => until(() => page.getByText(text).filter({ visible: true }).first().isHidden()),
  miss: (page, what) => until(() => find(page, what).isHidden()),
  theme: (page, { dark }) => page.emulateMedia({ colorScheme: dark ? "dark" : "light" }),
  size: (page, { width, height }) => page.setViewportSize({ width, height }),
  async shot(page, { path }) {
    await rest(page);
    await page.screenshot({ path });
  },
  /** Wait until the element with this name has the focus. */
  focused: (page, { name }) =>
    page.waitForFunction((wanted) => {
      const element = document.activeElement;
      const found = element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent;
      return found === wanted;
    }, name).then(() => undefined),

  /** Fail the requests of an operation. */
  fail: (page, { operation, status }) => intercept(page, operation, (route) => route.fulfill({ status, body: "" })),
  /** Hold back the responses of an operation until `release`. */
  hold: (page, { operation }) =>
    intercept(page, operation, async (route) => {
      const response = await route.fetch();
      await new Promise((resolve) => held.push(resolve));
      return route.fulfill({ response });
    }),
  /** Wait until a response is held back. */
  held: () => until(() => held.length > 0),
  release: () => held.splice(0).forEach((go) => go()),
  /** Replace a text in the responses of an operation. */
  forge: (page, { operation, field, value }) =>
    actions.rewrite(page, { operation, pattern: `"${field}":"[^"]*"`, text: `"${field}":"${value}"` }),
  /** Answer the requests to a host with a picture. */
  pictures: (page, { host }) => page.route(`https://${host}/**`, (route) => route.fulfill({ contentType: "image/svg+xml", body: PICTURE })),
  /** Wait until so many pictures are there. */
  loaded: (page, { count }) =>
    page
      .waitForFunction((wanted) => [...document.images].filter(({ naturalWidth }) => naturalWidth).length === wanted, count)
      .then(() => undefined),
  reload: (page) => page.reload(),

  /** Return what the server has sent to a page, and what its scripts can read. */
  async readable(page) {
    const stored = await page.evaluate(async () => {
      const databases = await indexedDB.databases();
      const caches = await window.caches.keys();
      return JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, databases, caches]);
    });
    return [stored, ...received.get(page)];
  },
  /** Return the cookies of the browser, also those that scripts cannot read. */
  cookies: (page) => page.context().cookies(),
  keep: (page, { cookies }) => page.context().addCookies(cookies),

  /** Send a request from a script of the page. Return the status and the text of the response, or the error. */
  send: (page, { url, options }) =>
    page.evaluate(
      async ([address, init]) => {
        try {
          const response = await fetch(address, { credentials: "include", ...init });
          return [response.status, await response.text()];
        } catch (error) {
          return [0, String(error)];
        }
      },
      [url, options],
    ),
  /** Send a form, as a page can to any other site: the browser shows the response. */
  async submit(page, { url, name, value }) {
    const response = page.waitForResponse(url);
    await page.evaluate(
      ([address, field, text]) => {
        const form = document.createElement("form");
        Object.assign(form, { action: address, method: "post", enctype: "text/plain" });
        const input = Object.assign(document.createElement("input"), { name: field, value: text });
        form.append(input);
        document.body.append(form);
        form.submit();
      },
      [url, name, value],
    );
    return (await response).status();
  },
  /** Subscribe over a new WebSocket. Return the first answer, or the code with which the server closes it. */
  subscribe: (page, { url, query }) =>
    page.evaluate(
      ([address, document]) =>
        new Promise((resolve) => {
          const socket = new WebSocket(address.replace("http", "ws"), "graphql-transport-ws");
          const say = (message) => socket.send(JSON.stringify(message));
          socket.onopen = () => say({ type: "connection_init" });
          socket.onclose = ({ code }) => resolve(code);
          socket.onmessage = ({ data }) => {
            const { type, payload } = JSON.parse(data);
            if (type === "connection_ack") return say({ id: "1", type: "subscribe", payload: { query: document } });
            if (type === "ping") return undefined;
            socket.onclose = null;
            socket.close();
            return resolve(payload);
          };
        }),
      [url, query],
    ),
  /** Return the names of the files of scripts and styles that the page has loaded. */
  assets: (page) =>
    page.evaluate(() => performance.getEntriesByType("resource").flatMap(({ name }) => name.match(/assets\/.*/) ?? [])),
  /** Fail the requests for files whose names begin so. */
  withhold: (page, { name }) => page.route(`**/assets/${name}*`, (route) => route.abort()),
  free: (page) => page.unrouteAll({ behavior: "ignoreErrors" }),

  /** Return the posts of the home timeline: show the new ones, and scroll until there are enough or no more come. */
  async posts(page, { enough }) {
    const pill = page.locator(".pill");
    let [count, since] = [-1, Date.now()];
    for (;;) {
      if (await pill.count()) await pill.click().catch(() => undefined);
      const now = await page.locator("main article.post").count();
      if (now !== count) [count, since] = [now, Date.now()];
      if (count >= enough || Date.now() - since > PATIENCE) break;
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      await page.waitForTimeout(50);
    }
    return page.locator("main article.post .post-text").allTextContents();
  },
  shown: (page) => page.locator("main article.post:visible .post-text").allTextContents(),
  /** Wait until the page shows the posts with these texts and no others, in this order. */
  async shows(page, { texts }) {
    const end = Date.now() + TIMEOUT;
    let found;
    do {
      found = await actions.shown(page);
      if (JSON.stringify(found) === JSON.stringify(texts)) return;
      await page.waitForTimeout(50);
    } while (Date.now() < end);
    throw new Error(`the page shows ${JSON.stringify(found)}`);
  },
  top: (page) => page.evaluate(() => scrollTo(0, 0)),
  bottom: (page) => page.evaluate(() => scrollTo(0, document.body.scrollHeight)),
  /** Return the controls that reach beyond the screen, and the page itself if it scrolls sideways. */
  overflow: (page) =>
    page.evaluate(() =>
      [...document.querySelectorAll("button, a, input, textarea, article")]
        .filter((each) => each.getBoundingClientRect().right > innerWidth)
        .concat(document.documentElement.scrollWidth > innerWidth ? document.documentElement : [])
        .map((each) => each.outerHTML.slice(0, 200)),
    ),

  /** Return the buttons, links and inputs that have no name. */
  nameless: (page) =>
    page.evaluate(() =>
      [...document.querySelectorAll("button, a, input, textarea, summary")]
        .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.length))
        .map((each) => each.outerHTML),
    ),
  /** Return the milliseconds of the median frame while the page scrolls: a busy machine delays single frames. */
  scroll: (page) =>
    page.evaluate(async () => {
      const frames = [];
      scrollTo(0, 0);
      await new Promise(requestAnimationFrame);
      let last = performance.now();
      for (let step = 0; step < 60; step++) {
        scrollBy(0, step < 30 ? 1500 : -1500);
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        last = now;
      }
      return frames.sort((a, b) => a - b)[30];
    }),
  errors: () => errors.splice(0),
};

// For the screens, and for what users do twice or what fails.
Object.assign(actions, {
  async doubleClick(page, what) {
    await show(page);
    await find(page, what).dblclick();
  },
  focus: (page, what) => find(page, what).focus(),
  hover: (page, what) => find(page, what).hover(),
  /** Wait until a field has this text. */
  async holds(page, { label, text }) {
    const field = await page.getByLabel(label, { exact: true }).elementHandle();
    await page.waitForFunction(([element, wanted]) => element.value === wanted, [field, text]);
  },
  offline: (page, { isOffline }) => page.context().setOffline(isOffline),
  text: (page) => page.locator("body").innerText(),
  /** Return the violations of the accessibility rules of axe: of all rules, or of those that are named. */
  async axe(page, { rules }) {
    await rest(page);
    if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
    return page.evaluate(async (runOnly) => {
      const { violations } = await globalThis.axe.run({ resultTypes: ["violations"], ...(runOnly && { runOnly }) });
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
      );
    }, rules);
  },
  /** Replace a pattern in the responses of an operation. */
  rewrite: (page, { operation, pattern, text }) =>
    intercept(page, operation, async (route) => {
      const response = await route.fetch();
      return route.fulfill({ response, body: (await response.text()).replace(new RegExp(pattern, "g"), text) });
    }),
  /** Fail the requests of an operation. Unless `arrives` is false, the server executes them, and the response is lost. */
  lose: (page, { operation, arrives = true }) =>
    intercept(page, operation, async (route) => {
      if (arrives) await route.fetch();
      return route.abort();
    }),
});

/** Answer commands until the connection is closed. */
async function serve(connection) {
  for await (const line of createInterface({ input: connection })) {
    const { action, page, ...values } = JSON.parse(line);
    const argument = action === "open" ? [{ page, ...values }] : [pages.get(page), values];
    let answer;
    try {
      answer = { value: (await (action === "reset" ? reset() : actions[action](...argument))) ?? null };
    } catch (error) {
      answer = { error: [`${action} ${JSON.stringify(values)}: ${String(error)}`, ...errors].join("\n") };
    }
    connection.write(`${JSON.stringify(answer)}\n`);
  }
}

/** Keep contexts, each with a page, for the next test: to start them takes a second of computation. */
async function reset() {
  actions.release();
  await Promise.all([...contexts.values()].map(clear));
  for (const known of [contexts, pages, received]) known.clear();
  errors.length = 0;
}

/** Clear all that a context knows but the files of the app. If that fails, close it. */
async function clear(context) {
  try {
    const [page, ...others] = context.pages();
    for (const each of [page, ...others]) {
      await each.unrouteAll({ behavior: "ignoreErrors" });
      const session = await context.newCDPSession(each);
      await session.send("Storage.clearDataForOrigin", { origin: new URL(each.url()).origin, storageTypes: "all" });
      await session.detach();
    }
    for (const other of others) await other.close();
    await page.evaluate(() => sessionStorage.clear());
    await page.emulateMedia({ reducedMotion: null });
    await page.goto(BLANK);
    for (const event of EVENTS) page.removeAllListeners(event);
    await context.clearCookies();
    await context.setOffline(false);
    unused[context.kind].push(context);
  } catch {
    await context.close();
  }
}

process.stdin.on("end", () => browser.close()).resume(); // when the process that has started this one ends
const server = createServer().listen(process.argv[2], () => console.log("listening"));
for await (const [connection] of on(server, "connection")) {
  connection.on("error", () => undefined); // the test has closed it
  await serve(connection);
  await reset();
}
