import { DurableStreamTestServer } from '@durable-streams/server'
import { host } from '../harness/host.ts'

host({
  async server({ directory, onDisk = false }: { directory: string; onDisk?: boolean }) {
    const server = new DurableStreamTestServer({ port: 0, ...(onDisk ? { dataDir: directory } : {}) })
    const url = new URL(await server.start())
    for (const path of ['/my-stream', '/v1/stream/my-stream']) {
      const headers = { 'content-type': 'application/json' }
      await fetch(new URL(path, url), { method: 'PUT', headers })
    }
    return { info: { port: Number(url.port) }, close: () => server.stop() }
  },
})
