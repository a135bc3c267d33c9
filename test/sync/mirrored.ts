import { onTestFinished } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import type { WakeUps } from '../../adapters/sync/activity.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { type Mirror, type MirrorOptions, mirror } from '../../adapters/sync/mirror.ts'
import type { SyncedStream } from '../../adapters/sync/synced-stream.ts'
import { type SyncedStreamOptions, syncedStream } from '../../adapters/sync/synced-stream.ts'
import { faultyHandler, type VirtualClock } from '../../adapters/testing/index.ts'
import { type OpenOptions, open, type Stream } from '../../src/index.ts'
import type { MirrorState } from '../../src/sync/mirror.ts'
import { APPEND_HEADER } from '../../src/wire/headers.ts'
import { testClock } from '../support/index.ts'

/** Tabs elect a leader in this thread, and pauses do not vary. */
export const OPTIONS = { random: () => 0.5, coordinator: coordinateInThread } as const

interface ServerSettings {
  /** Whether the server, or a proxy before it, ignores the header of producers. */
  ignoresProducers: boolean
  /** The status with which a gateway answers instead of the server. */
  gatewayStatus: number | undefined
}

/** A server behind an unreliable network, on a virtual clock. */
export async function openServer(
  options: Partial<OpenOptions> = {},
  { auth }: Pick<HandlerOptions, 'auth'> = { auth: 'none' },
) {
  const clock = testClock()
  const storage = memory()
  const serve = async () => {
    const hw = await open({ storage, ...options, clock })
    onTestFinished(() => hw.close())
    return { hw, handler: createHandler(hw, { auth }), stream: hw.basin('basin').stream('stream') }
  }
  let running = await serve()
  const settings: ServerSettings = { ignoresProducers: false, gatewayStatus: undefined }
  const handle = async (request: Request) => {
    const { gatewayStatus: status } = settings
    if (status !== undefined) return new Response('<html>log in</html>', { status })
    if (settings.ignoresProducers) request.headers.delete(APPEND_HEADER)
    return running.handler(request)
  }
  const network = faultyHandler(handle, { clock })
  return {
    settings,
    clock,
    network,
    get hw() {
      return running.hw
    },
    get stream() {
      return running.stream
    },
    /** Closes the engine and opens another one on the same storage. */
    restart: async () => {
      await running.hw.close()
      running = await serve()
    },
    /** Handles a request without the network. */
    handle,
    /** Connects another client. Resolves to the basin. */
    connected: async (options: Partial<ConnectOptions> = {}) => {
      const client = await connect({
        url: 'http://localhost',
        fetch: network,
        clock,
        random: () => 0.5,
        ...options,
      })
      onTestFinished(() => client.close())
      return client.basin('basin')
    },
  }
}

export type Server = Awaited<ReturnType<typeof openServer>>

/** A device: an engine of its own unless the storage is given. */
export async function openDevice(server: Server, storage = memory(), options: Partial<ConnectOptions> = {}) {
  const { clock } = server
  const hw = await open({ storage, clock })
  const remoteBasin = await server.connected(options)
  const remote = remoteBasin.stream('stream')
  const local = hw.basin('basin').stream('stream')
  /** The listeners of the events of the page. */
  const wakeUps = new Set<() => void>()
  /** The listeners of the loss of the network. */
  const losses = new Set<() => void>()
  const listen: WakeUps = (callback, lose = () => {}) => {
    wakeUps.add(callback)
    losses.add(lose)
    return () => {
      wakeUps.delete(callback)
      losses.delete(lose)
    }
  }
  const start = (options: MirrorOptions = {}, ends = { remote, local }): Mirror => {
    const started = mirror(ends.remote, ends.local, { ...OPTIONS, wakeUps: listen, ...options })
    onTestFinished(() => started.close())
    return started
  }
  const startSynced = (
    options: SyncedStreamOptions<'string'> = {},
    ends = { remote, local },
  ): SyncedStream => {
    const synced = syncedStream(ends.remote, ends.local, { ...OPTIONS, wakeUps: listen, ...options })
    onTestFinished(() => synced.close())
    return synced
  }
  onTestFinished(() => hw.close())
  const wakeUp = () => {
    for (const callback of [...wakeUps]) callback()
  }
  const loseNetwork = () => {
    for (const callback of [...losses]) callback()
  }
  return { hw, storage, remoteBasin, remote, local, start, startSynced, listen, wakeUps, wakeUp, loseNetwork }
}

/** A server with a stream, and a device. */
export async function openBoth(options: Partial<OpenOptions> = {}) {
  const server = await openServer(options)
  const device = await openDevice(server)
  return { ...device, server, clock: server.clock, network: server.network, origin: server.stream }
}

/** The states of a mirror from now on, without repetitions of kinds. */
export function kindsOf({ state$ }: Mirror): string[] {
  const kinds: string[] = []
  const subscription = state$.subscribe(({ kind }) => {
    if (kinds.at(-1) !== kind) kinds.push(kind)
  })
  onTestFinished(() => subscription.unsubscribe())
  return kinds
}

/** Lets time pass until the mirror is in a state of the kind, at most 10 minutes. */
export async function until<Kind extends MirrorState['kind']>(
  { state$ }: Mirror,
  kind: Kind,
  clock: VirtualClock,
): Promise<Extract<MirrorState, { readonly kind: Kind }>> {
  let current: MirrorState | undefined
  const subscription = state$.subscribe((state) => {
    current = state
  })
  try {
    await clock.settle()
    for (let i = 0; i < 600 && current?.kind !== kind; i++) await clock.advance(1_000)
  } finally {
    subscription.unsubscribe()
  }
  if (current?.kind !== kind) throw new Error(`still ${JSON.stringify(current)}, not ${kind}`)
  return current as Extract<MirrorState, { readonly kind: Kind }>
}

/** Everything that is stored of a stream. */
export async function contentOf(stream: Stream) {
  const records = await stream.read({}, { as: 'bytes' }).toArray()
  return { records, end: (await stream.checkTail()).seqNum }
}
