import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/forms.css";
import "./styles/lists.css";
import "./styles/posts.css";
import "./styles/notifications.css";
import "./styles/user-lists.css";
import "./styles/phone.css";
import { applyTheme } from "./ui/theme";

const root = document.getElementById("root");
if (!root) throw new Error("The page has no element #root.");
applyTheme();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
