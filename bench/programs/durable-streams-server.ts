import { DurableStreamTestServer } from '@durable-streams/server'
import { host } from '../harness/host.ts'

host({
  async server({ directory, onDisk = false }: { directory: string; onDisk?: boolean }) {
    const server = new DurableStreamTestServer({ port: 0, ...(onDisk ? { dataDir: directory } : {}) })
    const url = new URL(await server.start())
    await fetch(new URL('/my-stream', url), {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
    })
    return { info: { port: Number(url.port) }, close: () => server.stop() }
  },
})
