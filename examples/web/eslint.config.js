// Lints the app; `.ci/run` lints the client kit with it, too.
import { defineConfig } from "eslint/config";
import hooks from "eslint-plugin-react-hooks";
import typescript from "typescript-eslint";

export default defineConfig(
  { ignores: ["**/__generated__/"] },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [
      typescript.configs.strictTypeChecked,
      typescript.configs.stylisticTypeChecked,
      hooks.configs.flat["recommended-latest"],
    ],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      // `variables["after"]`: undeclared properties look different.
      "@typescript-eslint/dot-notation": ["error", { allowIndexSignaturePropertyAccess: true }],
      // Handlers such as `() => setOpen(true)` are clear, and short.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  {
    // Records can be missing, although the types of relay-runtime say that they are always there.
    files: ["**/client/src/relay.ts", "**/src/post/connections.ts"],
    rules: { "@typescript-eslint/no-unnecessary-condition": "off" },
  },
);
