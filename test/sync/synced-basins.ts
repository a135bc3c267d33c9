import { onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type SyncedBasin, type SyncedBasinOptions, syncedBasin } from '../../adapters/sync/synced-basin.ts'
import { faultyHandler, type Handler, type VirtualClock, virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { OPTIONS } from './mirrored.ts'

/** Counts the requests that are open at once: until their responses have arrived, or are cancelled. */
function counting(handler: Handler) {
  const counts = { open: 0, reads: 0, mostReads: 0, total: 0, paths: [] as string[] }
  const fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    const reads = request.method === 'GET' && pathname.endsWith('/records') ? 1 : 0
    counts.open++
    counts.total++
    counts.reads += reads
    counts.mostReads = Math.max(counts.mostReads, counts.reads)
    counts.paths.push(`${request.method} ${decodeURIComponent(pathname)}`)
    let isOpen = true
    const end = () => {
      if (!isOpen) return
      isOpen = false
      counts.open--
      counts.reads -= reads
    }
    request.signal.addEventListener('abort', end)
    try {
      const response = await handler(request)
      if (response.body === null) {
        end()
        return response
      }
      const reader = response.body.getReader()
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          try {
            const { done, value } = await reader.read()
            if (!done) return controller.enqueue(value)
            end()
            controller.close()
          } catch (error) {
            end()
            controller.error(error)
          }
        },
        async cancel(reason) {
          end()
          await reader.cancel(reason)
        },
      })
      const { status, statusText, headers } = response
      return new Response(body, { status, statusText, headers })
    } catch (error) {
      end()
      throw error
    }
  }
  return { fetch, counts }
}

/** A server with an empty basin. */
export async function openBasinServer() {
  const clock = virtualClock()
  const hw = await open({ storage: memory(), clock })
  onTestFinished(() => hw.close())
  await hw.ensureBasin('basin')
  const handler = createHandler(hw, { auth: 'none' })
  return { clock, hw, handler, basin: hw.basin('basin') }
}

export type BasinServer = Awaited<ReturnType<typeof openBasinServer>>

/** A tab of a device with a network of its own; of the same device if the storage is. */
export async function openTab({ clock, handler }: BasinServer, storage = memory()) {
  const network = faultyHandler(handler, { clock })
  const { fetch, counts } = counting(network)
  const hw = await open({ storage, clock })
  const client = await connect({ url: 'http://localhost', fetch, clock, random: () => 0.5, retries: 0 })
  const wakeUps = new Set<() => void>()
  const start = async (options: Partial<SyncedBasinOptions> = {}): Promise<SyncedBasin> => {
    const synced = await syncedBasin({
      remote: client.basin('basin'),
      local: hw.basin('basin'),
      prefix: 'rooms/',
      ...OPTIONS,
      wakeUps: (callback) => {
        wakeUps.add(callback)
        return () => wakeUps.delete(callback)
      },
      ...options,
    })
    onTestFinished(() => synced.close())
    return synced
  }
  onTestFinished(async () => {
    await client.close()
    await hw.close()
  })
  return {
    hw,
    remote: client.basin('basin'),
    local: hw.basin('basin'),
    network,
    counts,
    storage,
    start,
    wakeUps,
  }
}

/** Returns the kinds of the states of the streams, by name without the prefix. */
export function kindsIn(basin: SyncedBasin): Record<string, string> {
  return Object.fromEntries(basin.streams.map(({ name, state }) => [name.replace('rooms/', ''), state.kind]))
}

/** Lets time pass until a condition holds, at most 10 minutes. */
export async function eventually(clock: VirtualClock, condition: () => boolean | Promise<boolean>) {
  await clock.settle()
  for (let i = 0; i < 1_200; i++) {
    if (await condition()) return
    await clock.advance(500)
  }
  throw new Error('the condition never held')
}
