import type { EngineStats } from '../../../src/index.ts'
import type { Question } from './service-worker.ts'

/** Resolves when this page's requests go through the service worker. */
export async function control(): Promise<void> {
  const { serviceWorker } = navigator
  const controlled = new Promise<void>((resolve) => {
    serviceWorker.addEventListener('controllerchange', () => resolve(), { once: true })
  })
  await serviceWorker.register('/service-worker.js')
  if (serviceWorker.controller === null) await controlled
}

function ask<Answer>(question: Question): Promise<Answer> {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    port1.onmessage = ({ data }: MessageEvent<Answer>) => resolve(data)
    navigator.serviceWorker.controller!.postMessage(question, [port2])
  })
}

/** What is open in the service worker's engine. */
export const stats = () => ask<EngineStats>('stats')

/** A new token that permits everything. */
export const rootToken = () => ask<string>('root-token')
