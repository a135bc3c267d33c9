import type { ReadCursor } from '../../src/engine/read-cursor.ts'
import type { ReadEvent } from '../../src/index.ts'
import { type ErrorBody, errorBody } from '../../src/wire/error-body.ts'

/** How the events of a read session are written. */
export interface SessionEncoding {
  event(event: ReadEvent): Uint8Array | Promise<Uint8Array>
  failure(error: ErrorBody): Uint8Array
  /** What tells a clean end, if anything does. */
  readonly end?: Uint8Array
}

/**
 * The response of a read session. Its reader sets the pace: each pull is one event, nothing is read ahead. The cursor is closed when the
 * body is cancelled, when the signal aborts and when the session ends.
 */
export function readStream(
  cursor: ReadCursor | undefined,
  encoding: SessionEncoding,
  signal: AbortSignal,
  report: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  let isCancelled = false
  const close = () => {
    signal.removeEventListener('abort', close)
    cursor?.close()
  }
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()

  async function next(): Promise<{ readonly chunk?: Uint8Array | undefined; readonly isLast: boolean }> {
    try {
      const event = await cursor?.next()
      if (event === undefined) return { chunk: encoding.end, isLast: true }
      return { chunk: await encoding.event(event), isLast: false }
    } catch (error) {
      if (!signal.aborted) report(error)
      return { chunk: encoding.failure(errorBody(error)), isLast: true }
    }
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { chunk, isLast } = await next()
        if (isCancelled) return
        if (signal.aborted) {
          // A session that is cut off must not look like one that ended.
          controller.error(signal.reason)
          return
        }
        if (chunk !== undefined) controller.enqueue(chunk)
        if (!isLast) return
        close()
        controller.close()
      },
      cancel() {
        isCancelled = true
        close()
      },
    },
    { highWaterMark: 0 },
  )
}
