// Builds the client kit if it is missing, starts the demo and Vite, compiles the Relay documents at each change, and
// ends everything together.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, watch } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const app = fileURLToPath(new URL("..", import.meta.url));
const port = process.env.PORT ?? "8000";
const env = { ...process.env, API: `http://localhost:${port}` };
const PAUSE = 100; // milliseconds, for editors that write a file in steps

const compile = () => spawnSync("npx relay-compiler", { cwd: app, shell: true, stdio: "inherit" }).status;

const kit = `${root}/client`;
const buildKit = () => spawnSync("npm run build", { cwd: kit, shell: true, stdio: "inherit" }).status;

if ((!existsSync(`${kit}/dist/index.js`) && buildKit()) || compile()) process.exit(1);
const children = [];

/** Run a command until any of the commands ends. */
function start(command, cwd) {
  const child = spawn(command, { cwd, env, shell: true, stdio: "inherit", detached: true });
  child.on("exit", end);
  children.push(child);
}

// The compiler's own watch mode needs another program, watchman.
let timer;
watch(`${app}/src`, { recursive: true }, (_, name) => {
  if (!name || name.includes("__generated__")) return;
  clearTimeout(timer);
  timer = setTimeout(compile, PAUSE);
});

async function isReady() {
  try {
    return (await fetch(`${env.API}/health/ready`)).ok;
  } catch {
    return false;
  }
}

function end() {
  for (const child of children) {
    try {
      process.kill(-child.pid, "SIGTERM");
    } catch {
      // It has ended already.
    }
  }
  process.exit();
}

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, end);
start(`python3 -m uv run fanline demo --port ${port}`, root);
while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, PAUSE));
start("npx vite", app); // last, so that the address of the app is the last line
