import type { EagerBody } from './eager-body.ts'

/**
 * The rest of a body of which some was read eagerly. When the client leaves, its source is cancelled, and what `srvx` has sent of it
 * does not end like a whole response. A failure is reported, because `srvx` only drops the client then. When it is `undefined`, `srvx`
 * would let the client wait for ever: hence an error in its place.
 */
export function resumeBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { chunks, next }: EagerBody,
  left: AbortSignal,
  report: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  let pending = next
  const take = () => {
    const read = pending ?? reader.read()
    pending = undefined
    return read
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk)
        const abandon = () => {
          controller.error(left.reason)
          reader.cancel(left.reason).catch(() => {})
        }
        if (left.aborted) abandon()
        else left.addEventListener('abort', abandon, { once: true })
      },
      async pull(controller) {
        try {
          const { done, value } = await take()
          if (left.aborted) return
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          if (!left.aborted) report(error)
          controller.error(error ?? new Error('The response body failed'))
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
