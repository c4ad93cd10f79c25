import { defineConfig } from "vite";
import relay from "vite-plugin-relay-lite";
import { size } from "./scripts/size.js";

const api = process.env["API"] ?? "http://localhost:8000";

export default defineConfig({
  base: "./",
  plugins: [relay({ codegen: false }), size()],
  server: { proxy: { "/graphql": { target: api, ws: true } } },
  preview: { proxy: { "/graphql": { target: api, ws: true } } },
  build: { target: "es2022", chunkSizeWarningLimit: 1000 }, // scripts/size.js limits what browsers load at first
});
