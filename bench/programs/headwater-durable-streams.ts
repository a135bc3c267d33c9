import { loadNode, openHeadwater } from '../harness/headwater.ts'
import { host } from '../harness/host.ts'

/** Longer than any row takes: a follower of the load does not come back. */
const SSE_MS = 2 ** 30

host({
  async server({ directory, onDisk = false }: { directory: string; onDisk?: boolean }) {
    const { serve } = await loadNode()
    const headwater = await openHeadwater(onDisk ? directory : undefined)
    const durableStreams = { basin: 'durable', sseMs: SSE_MS }
    const server = await serve(headwater, { auth: 'none', port: 0, durableStreams })
    await fetch(`${server.url}/v1/stream/my-stream`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
    })
    return {
      info: { port: server.port },
      close: () => Promise.all([server.close(), headwater.close()]),
    }
  },
})
