import { expect } from 'vitest'
import { createHandler } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../../adapters/testing/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { openCountsOf } from '../../support/open-counts.ts'
import type { HttpRequest } from './http-requests.ts'

/** Longer than every wait: a read of one batch waits for at most 60 s. */
const PATIENCE_SECONDS = 70
const STEP_SECONDS = 10
/** Enough for everything that does not wait. */
const TURNS = 3
/** Limits a body that may never end. */
const CHUNKS_MAX = 8

export interface Exchange {
  readonly request: HttpRequest
  readonly response: Response
  /** The received part of the body. */
  readonly body: Uint8Array
  /** Whether the body ended without being cancelled. */
  readonly isWhole: boolean
}

export const ROOT_TOKEN = 'the-root-token-of-an-engine'

/**
 * Sends the requests in sequence to an engine of their own. Throws if one is not answered or leaves something
 * open.
 */
export async function exchanges(
  requests: readonly HttpRequest[],
  auth: 'none' | 'token' = 'none',
): Promise<Exchange[]> {
  const clock = virtualClock()
  const random = new Prng(1)
  const hw = await open({ storage: memory(), usage: usageMetrics(), clock, random: () => random.next() })
  const errors: unknown[] = []
  const handler = createHandler(hw, { auth, onError: (error) => errors.push(error) })
  const made: Exchange[] = []
  try {
    await prepare(hw)
    for (const request of requests) made.push(await exchange(handler, request, clock))
    for (let turn = 0; turn < TURNS; turn++) await macrotask()
    const open = Object.entries(openCountsOf(hw)).filter(([, count]) => count !== 0)
    expect(open, 'what is left open').toEqual([])
  } finally {
    await hw.close()
  }
  expect(clock.pending, 'timers that are left').toBe(0)
  expect(errors, 'failures that the handler reports').toEqual([])
  return made
}

async function prepare(hw: Engine): Promise<void> {
  await hw.setRootToken(ROOT_TOKEN)
  await hw.createBasin('my-basin', { createStreamOnAppend: true })
  await hw.createBasin('sealed-basin', { streamCipher: 'aes-256-gcm', createStreamOnAppend: true })
  const stream = hw.basin('my-basin').stream('s')
  await stream.append(['zero', { body: 'one', headers: [['name', 'value']] }, new Uint8Array(2000)])
}

async function exchange(
  handler: (request: Request) => Promise<Response>,
  request: HttpRequest,
  clock: VirtualClock,
): Promise<Exchange> {
  const client = new AbortController()
  const response = await inTime(handler(requestOf(request, client.signal)), clock)
  const reader = response.body?.getReader()
  const chunks: Uint8Array[] = []
  let isWhole = reader === undefined
  for (let i = 0; i < CHUNKS_MAX && !isWhole; i++) {
    const read = await inTime(reader!.read(), clock)
    if (read.done) isWhole = true
    else chunks.push(read.value)
  }
  // Some clients break the connection, others cancel the body.
  const body = Buffer.concat(chunks)
  if (!isWhole && body.length % 2 === 0) client.abort()
  await reader?.cancel().catch(() => {})
  return { request, response, body, isWhole }
}

function requestOf({ method, url, headers, body }: HttpRequest, signal: AbortSignal): Request {
  const init: RequestInit & { duplex: 'half' } = { method, headers, signal, duplex: 'half' }
  if (method !== 'GET' && method !== 'HEAD' && body.length > 0) init.body = inTwoPieces(body)
  return new Request(url, init)
}

/** Delivers as a network does. */
function inTwoPieces(body: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      const middle = Math.ceil(body.length / 2)
      for (const piece of [body.subarray(0, middle), body.subarray(middle)]) {
        if (piece.length > 0) controller.enqueue(piece)
      }
      controller.close()
    },
  })
}

/** Resolves as the promise does, and advances the time if necessary. */
async function inTime<Value>(promise: Promise<Value>, clock: VirtualClock): Promise<Value> {
  let isSettled = false
  const settle = (): void => {
    isSettled = true
  }
  promise.then(settle, settle)
  for (let turn = 0; turn < TURNS && !isSettled; turn++) await macrotask()
  for (let seconds = 0; seconds < PATIENCE_SECONDS && !isSettled; seconds += STEP_SECONDS) {
    await clock.advance(STEP_SECONDS * 1000)
  }
  return promise
}
