import react from "@vitejs/plugin-react";
import { defineConfig, loadEnv } from "vite";

export default defineConfig(({ mode }) => {
  // `npm run dev` shows the page with hot reload on top of a running server.
  const server = loadEnv(mode, ".", "PERDURE_")["PERDURE_URL"] ?? "http://127.0.0.1:8000";
  return {
    plugins: [react()],
    base: "/",
    build: {
      outDir: "../src/perdure/server/static",
      emptyOutDir: true,
      chunkSizeWarningLimit: 1500,
    },
    server: {
      proxy: {
        "/agents": { target: server, ws: true },
        "/playground.json": server,
      },
    },
  };
});
