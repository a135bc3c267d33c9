import { ApiError, type Client, errorOfBody, NOT_A_SERVER } from '../api/client.ts'
import type { Call } from '../api/request.ts'
import { EventParser, type ServerEvent } from '../api/sse.ts'
import type { Position, ReadBatch } from '../api/types.ts'

/** The first record of a tail. */
export type Start =
  | { readonly kind: 'tail_offset'; readonly value: number }
  | { readonly kind: 'seq_num'; readonly value: number }
  | { readonly kind: 'timestamp'; readonly value: number }

/** A stream as the console addresses it. */
export interface StreamTarget {
  readonly basin: string
  readonly stream: string
  readonly encryptionKey: string
}

/** The call that follows a stream. */
export function followCall({ basin, stream, encryptionKey }: StreamTarget, start: Start): Call {
  return {
    method: 'GET',
    path: ['streams', stream, 'records'],
    basin,
    query: { [start.kind]: start.value },
    accept: 'text/event-stream',
    encryptionKey,
  }
}

/** What a follower reports. */
export interface FollowEvents {
  onBatch(batch: ReadBatch): void
  /** The tail at the time of a heartbeat or a batch. Records before it may still follow. */
  onTail(tail: Position): void
  onState(state: 'connecting' | 'following' | { readonly retrying: string }): void
}

/** Servers send a heartbeat every 15 seconds at least. */
const SILENCE_MS = 20_000
/** Parsing gives way to the page this often. */
const WORK_MS = 12
const RETRY_MS = [250, 1000, 2000, 5000]
const RETRY_AFTER_MS_MAX = 60_000

/**
 * Follows a stream until the signal aborts; a lost connection is opened again after the last record. Resolves
 * when the server ends the read, and rejects with {@link ApiError} for an error that would recur.
 */
export async function follow(
  client: Client,
  target: StreamTarget,
  start: Start,
  events: FollowEvents,
  signal: AbortSignal,
): Promise<void> {
  let next = start
  let failures = 0
  while (!signal.aborted) {
    try {
      events.onState('connecting')
      await readOnce(client, followCall(target, next), signal, {
        ...events,
        onBatch(batch) {
          failures = 0
          const last = batch.records.at(-1)
          if (last !== undefined) next = { kind: 'seq_num', value: last.seq_num + 1 }
          events.onBatch(batch)
        },
        onTail(tail) {
          failures = 0
          next = fixedStart(next, tail)
          events.onTail(tail)
        },
      })
      return
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ApiError && error.isTransient)) throw error
      const wait = RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]!
      events.onState({ retrying: error.message })
      await pause(Math.max(wait, Math.min(error.retryAfterMs, RETRY_AFTER_MS_MAX)), signal)
    }
  }
}

/**
 * An offset from the tail as a sequence number, by the first tail that is known: a later connection would
 * count from a later tail, and miss the records between.
 */
export function fixedStart(start: Start, tail: Position): Start {
  if (start.kind !== 'tail_offset') return start
  return { kind: 'seq_num', value: Math.max(0, tail.seq_num - start.value) }
}

async function readOnce(
  client: Client,
  call: Call,
  signal: AbortSignal,
  events: FollowEvents,
): Promise<void> {
  const silence = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const restart = () => {
    clearTimeout(timer)
    timer = setTimeout(() => silence.abort(new Error('the server sent no heartbeat')), SILENCE_MS)
  }
  try {
    restart()
    const response = await client.send(
      { ...call, format: 'base64' },
      AbortSignal.any([signal, silence.signal]),
    )
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
      throw new ApiError(response.status, '', `${NOT_A_SERVER}: the response has no events`)
    }
    events.onState('following')
    for await (const event of eventsOf(response, restart)) if (deliver(event, events)) return
    throw new ApiError(0, 'network', 'the connection was lost')
  } catch (error) {
    if (error instanceof ApiError || signal.aborted) throw error
    const reason = silence.signal.aborted ? silence.signal.reason : error
    throw new ApiError(0, 'network', reason instanceof Error ? reason.message : 'the connection was lost')
  } finally {
    clearTimeout(timer)
  }
}

async function* eventsOf(response: Response, onChunk: () => void): AsyncGenerator<ServerEvent> {
  const parser = new EventParser()
  const decoder = new TextDecoder()
  const reader = response.body!.getReader()
  let workSince = performance.now()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onChunk()
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        yield event
        if (performance.now() - workSince > WORK_MS) {
          await new Promise((resolve) => setTimeout(resolve))
          workSince = performance.now()
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Returns true after the last event of a read that ended as asked. */
function deliver({ event, data }: ServerEvent, events: FollowEvents): boolean {
  if (event === 'batch') {
    const batch = JSON.parse(data) as ReadBatch
    events.onBatch(batch)
    if (batch.tail !== undefined) events.onTail(batch.tail)
  } else if (event === 'ping') {
    events.onTail((JSON.parse(data) as { readonly tail: Position }).tail)
  } else if (event === 'error') {
    throw errorOfEvent(data)
  }
  return event === 'message' && data === '[DONE]'
}

/** Events carry no status; the next connection shows whether the error recurs. */
function errorOfEvent(data: string): ApiError {
  const error = errorOfBody(0, data)
  const isTransient = ['unavailable', 'storage', 'rate_limited', 'other', ''].includes(error.code)
  return isTransient ? error : new ApiError(400, error.code, error.message)
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve()
    }
    const timer = setTimeout(stop, ms)
    signal.addEventListener('abort', stop)
  })
}
