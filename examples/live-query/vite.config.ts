import react from '@vitejs/plugin-react'
import { defineConfig, type PreviewServer, type ViteDevServer } from 'vite'
import { startServer } from './server.ts'

/** Runs the server in the process of Vite, which restarts it after a change of its files. */
async function runServer({ middlewares, httpServer }: ViteDevServer | PreviewServer) {
  const { handler, close } = await startServer()
  middlewares.use(handler)
  httpServer?.once('close', close)
}

export default defineConfig({
  // The client of Durable Streams uses it.
  define: { 'process.nextTick': 'queueMicrotask' },
  plugins: [react(), { name: 'server', configureServer: runServer, configurePreviewServer: runServer }],
})
