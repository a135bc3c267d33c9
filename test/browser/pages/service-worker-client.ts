import type { EngineStats } from '../../../src/index.ts'
import type { Query } from './service-worker.ts'

/** Registers the service worker and resolves once it controls the page. */
export async function control(): Promise<void> {
  const { serviceWorker } = navigator
  const controlled = new Promise<void>((resolve) => {
    serviceWorker.addEventListener('controllerchange', () => resolve(), { once: true })
  })
  await serviceWorker.register('/service-worker.js')
  if (serviceWorker.controller === null) await controlled
}

function send<Answer>(query: Query): Promise<Answer> {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    port1.onmessage = ({ data }: MessageEvent<Answer>) => resolve(data)
    navigator.serviceWorker.controller!.postMessage(query, [port2])
  })
}

/** The statistics of the service worker's engine. */
export const stats = () => send<EngineStats>('stats')

/** A new root token. */
export const rootToken = () => send<string>('root-token')
