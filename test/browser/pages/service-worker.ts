import { serveFetchEvents } from '../../../adapters/http/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Engine, open } from '../../../src/index.ts'

/** The used part of a service worker's global scope, whose types conflict with those of pages. */
interface Scope {
  readonly clients: { claim(): Promise<void> }
  skipWaiting(): Promise<void>
  addEventListener(
    type: 'install' | 'activate' | 'message',
    listener: (event: MessageEvent & { waitUntil(work: Promise<unknown>): void }) => void,
  ): void
}

const scope = globalThis as unknown as Scope

/** Messages from pages, besides the protocol. */
export type Query = 'stats' | 'root-token'

let opening: Promise<Engine> | undefined
const engine = () => {
  opening ??= open({ storage: indexedDb('service-worker') })
  return opening
}

scope.addEventListener('install', (event) => event.waitUntil(scope.skipWaiting()))
scope.addEventListener('activate', (event) => event.waitUntil(scope.clients.claim()))
scope.addEventListener('message', (event) => event.waitUntil(answer(event)))
serveFetchEvents(engine, { auth: 'none', basin: 'my-first-app', prefix: '/open' })
serveFetchEvents(engine, { prefix: '/guarded' })

async function answer({ data, ports }: MessageEvent<Query>): Promise<void> {
  const hw = await engine()
  if (data === 'stats') ports[0]!.postMessage(hw.stats())
  if (data === 'root-token') {
    const token = `root-token-${crypto.randomUUID()}`
    await hw.setRootToken(token)
    ports[0]!.postMessage(token)
  }
}
