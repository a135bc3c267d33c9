import type { AddressInfo } from 'node:net'
import { defineConfig, type PreviewServer, type ViteDevServer } from 'vite'
import { appendOutput, startServer } from './server.ts'

/** Runs the server in the process of Vite, which restarts it after a change of its files. */
async function runServer({ middlewares, httpServer }: ViteDevServer | PreviewServer) {
  const { handler, close } = await startServer()
  middlewares.use(handler)
  httpServer?.once('listening', () => {
    const { port } = httpServer.address() as AddressInfo
    const stop = appendOutput('program.js', `http://localhost:${port}`)
    httpServer.once('close', stop)
  })
  httpServer?.once('close', close)
}

export default defineConfig({
  plugins: [{ name: 'server', configureServer: runServer, configurePreviewServer: runServer }],
})
