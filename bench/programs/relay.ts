import { setTimeout } from 'node:timers/promises'
import { Child } from '../harness/child.ts'
import { loadClient, loadSync, openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Params, type Prepared, type Turn } from '../harness/host.ts'
import { median } from '../harness/statistics.ts'

interface Place {
  readonly directory: string
}

interface Server {
  readonly port: number
}

/** The pause between two records, in milliseconds: nobody types faster. */
const PAUSE_MS = 2

/** Each body is the time when it was appended, by a clock that all processes share. */
const now = () => process.hrtime.bigint()

host({
  /** From `append` on one device to a confirmed record in the view of another: each is a process. */
  async synced({ directory }: Place): Promise<Prepared> {
    const server = await started('headwater-server', 'server', { directory, size: 1 })
    const device = await openDevice(server.port)
    const writer = await started('relay', 'synced writer', { port: server.port })
    const times: number[] = []
    const view = device.synced.view({ tailOffset: 0 }).subscribe(({ change }) => {
      for (const { body, isPending } of change.inserted) if (!isPending) times.push(millisecondsSince(body))
    })
    return turns(writer.child, times, async () => {
      view.unsubscribe()
      await device.close()
      await server.child.close()
    })
  },

  async 'synced writer'({ port }: Server): Promise<Prepared> {
    const { synced, close } = await openDevice(port)
    return {
      turn: (count) => paced(count, async (body) => (await synced.append(body)).confirmed()),
      close,
    }
  },

  /** From a request to an event at a follower: each is a process. */
  async relay(): Promise<Prepared> {
    const server = await started('bare-server', 'relay', {})
    const writer = await started('relay', 'relay writer', { port: server.port })
    const ending = new AbortController()
    const response = await fetch(`http://127.0.0.1:${server.port}/`, { signal: ending.signal })
    const times: number[] = []
    const follow = async (): Promise<void> => {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        for (const [, body] of chunk.matchAll(/^data: (.*)$/gm)) times.push(millisecondsSince(body!))
      }
    }
    const following = follow().catch(() => {})
    return turns(writer.child, times, async () => {
      ending.abort()
      await following
      await server.child.close()
    })
  },

  'relay writer': ({ port }: Server): Prepared => ({
    turn: (count) =>
      paced(count, async (body) => {
        const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body })
        await response.arrayBuffer()
      }),
  }),
})

/** Appends one record after another. */
async function paced(count: number, append: (body: string) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i++) {
    await append(String(now()))
    await setTimeout(PAUSE_MS)
  }
}

function millisecondsSince(time: string): number {
  return Number(now() - BigInt(time)) / 1e6
}

/** Reports the median of the turn as the time of each record. */
function turns(writer: Child, times: number[], close: () => Promise<unknown>): Prepared {
  return {
    async turn(count): Promise<Turn> {
      times.length = 0
      await writer.turn(count)
      while (times.length < count) await setTimeout(PAUSE_MS)
      return { wallMs: median(times) * count, units: count }
    },
    async close() {
      await writer.close()
      await close()
    },
  }
}

async function started(program: string, side: string, params: Params) {
  const child = new Child(program)
  const { port } = await child.prepare(side, params)
  return { child, port: Number(port) }
}

async function openDevice(port: number) {
  const { connect } = await loadClient()
  const { syncedStream } = await loadSync()
  const client = await connect({ url: `http://127.0.0.1:${port}` })
  const headwater = await openHeadwater()
  const remote = client.basin('my-basin').stream('streams/1')
  const synced = syncedStream(remote, streamNumber(headwater, 1))
  await new Promise<void>((resolve) => {
    synced.state$.subscribe(({ kind }) => {
      if (kind === 'live') resolve()
    })
  })
  return {
    synced,
    async close() {
      await synced.close()
      await client.close()
      await headwater.close()
    },
  }
}
