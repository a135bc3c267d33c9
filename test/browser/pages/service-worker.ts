import { serveFetchEvents } from '../../../adapters/http/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Headwater, open } from '../../../src/index.ts'

/** What is used of a service worker's global scope, whose types cannot stand beside those of pages. */
interface Scope {
  readonly clients: { claim(): Promise<void> }
  skipWaiting(): Promise<void>
  addEventListener(
    type: 'install' | 'activate' | 'message',
    listener: (event: MessageEvent & { waitUntil(work: Promise<unknown>): void }) => void,
  ): void
}

const scope = globalThis as unknown as Scope

/** What pages ask beside the protocol. */
export type Question = 'stats' | 'root-token'

let opening: Promise<Headwater> | undefined
const engine = () => {
  opening ??= open({ storage: indexedDb('service-worker') })
  return opening
}

scope.addEventListener('install', (event) => event.waitUntil(scope.skipWaiting()))
scope.addEventListener('activate', (event) => event.waitUntil(scope.clients.claim()))
scope.addEventListener('message', (event) => event.waitUntil(answer(event)))
serveFetchEvents(engine, { open: true, basin: 'my-first-app', prefix: '/open' })
serveFetchEvents(engine, { prefix: '/guarded' })

async function answer({ data, ports }: MessageEvent<Question>): Promise<void> {
  const hw = await engine()
  if (data === 'stats') ports[0]!.postMessage(hw.stats())
  if (data === 'root-token') {
    const token = `root-token-${crypto.randomUUID()}`
    await hw.setRootToken(token)
    ports[0]!.postMessage(token)
  }
}
