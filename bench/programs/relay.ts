import { EventEmitter, once } from 'node:events'
import { Child } from '../harness/child.ts'
import { loadClient, loadSync, openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared, type Turn } from '../harness/host.ts'
import { median } from '../harness/statistics.ts'

/** Two devices on one machine: what is appended on one is awaited on the other. */
interface Pair {
  append(body: string): Promise<unknown>
  /** Emits `body` when the other device shows it. */
  readonly shown: EventEmitter
  close(): Promise<unknown>
}

host({
  /** From `append` on one device to a confirmed record in the view of the other. */
  async synced({ directory }: { readonly directory: string }): Promise<Prepared> {
    const server = new Child('headwater-server', process.env.HEADWATER_DIST!)
    const { port } = await server.prepare('server', { directory, size: 1 })
    const devices = [await openDevice(Number(port)), await openDevice(Number(port))] as const
    const [writer, reader] = devices
    const shown = new EventEmitter()
    const view = reader.synced.view({ tailOffset: 0 }).subscribe(({ change }) => {
      for (const { body, isPending } of change.inserted) if (!isPending) shown.emit(body)
    })
    for (const { synced } of devices) await live(synced.state$)
    return turns({
      append: async (body) => (await writer.synced.append(body)).confirmed(),
      shown,
      async close() {
        view.unsubscribe()
        for (const device of devices) await device.close()
        await server.close()
      },
    })
  },

  /** From a request to an event at a follower. */
  async relay(): Promise<Prepared> {
    const server = new Child('bare-server', process.env.HEADWATER_DIST!)
    const { port } = await server.prepare('relay', {})
    const url = `http://127.0.0.1:${port}/`
    const ending = new AbortController()
    const response = await fetch(url, { signal: ending.signal })
    const shown = new EventEmitter()
    const follow = async (): Promise<void> => {
      const text = response.body!.pipeThrough(new TextDecoderStream())
      for await (const chunk of text) {
        for (const [, body] of chunk.matchAll(/^data: (.*)$/gm)) shown.emit(body!)
      }
    }
    const following = follow().catch(() => {})
    return turns({
      append: async (body) => (await fetch(url, { method: 'POST', body })).arrayBuffer(),
      shown,
      async close() {
        ending.abort()
        await following
        await server.close()
      },
    })
  },
})

async function openDevice(port: number) {
  const { connect } = await loadClient()
  const { syncedStream } = await loadSync()
  const client = await connect({ url: `http://127.0.0.1:${port}` })
  const headwater = await openHeadwater()
  const remote = client.basin('my-basin').stream('streams/1')
  const synced = syncedStream(remote, streamNumber(headwater, 1))
  return {
    synced,
    async close() {
      await synced.close()
      await client.close()
      await headwater.close()
    },
  }
}

function live(state$: { subscribe(next: (state: { kind: string }) => void): { unsubscribe(): void } }) {
  return new Promise<void>((resolve) => {
    state$.subscribe(({ kind }) => {
      if (kind === 'live') resolve()
    })
  })
}

let appended = 0

/** Reports the median of the turn as the time of each. */
function turns({ append, shown, close }: Pair): Prepared {
  return {
    async turn(count): Promise<Turn> {
      const times: number[] = []
      for (let i = 0; i < count; i++) {
        const body = `message ${appended++}`
        const start = performance.now()
        const arrived = once(shown, body)
        const sent = append(body)
        await arrived
        times.push(performance.now() - start)
        await sent
      }
      return { wallMs: median(times) * count, units: count }
    },
    close,
  }
}
