import { createRoot } from "react-dom/client";
import { App } from "./App";
import { CrashBoundary } from "./components/CrashBoundary";
import "./styles/base.css";
import "./styles/header.css";
import "./styles/transcript.css";
import "./styles/parts.css";
import "./styles/calls.css";
import "./styles/composer.css";

createRoot(document.getElementById("root")!).render(
  <CrashBoundary>
    <App />
  </CrashBoundary>,
);
