export interface RelayOptions {
  /** When it aborts, the body fails with its reason, and its source is cancelled. */
  readonly signal: AbortSignal
  /** Called once, when nothing comes any more. */
  readonly onEnd?: () => void
  /** The body fails with this error behind so many bytes, unless it ends before. */
  readonly cut?: { readonly afterBytes: number; readonly error: unknown }
}

/** The same response, whose body can end before its time. Nothing is read ahead. */
export function relayedResponse(response: Response, { signal, onEnd, cut }: RelayOptions): Response {
  const { body } = response
  if (body === null) {
    onEnd?.()
    return response
  }
  const reader = body.getReader()
  let left = cut?.afterBytes ?? Number.POSITIVE_INFINITY
  let fail = (_error: unknown): void => {}
  let isOver = false
  const end = () => {
    if (isOver) return
    isOver = true
    signal.removeEventListener('abort', abort)
    onEnd?.()
  }
  const abandon = (reason: unknown) => {
    end()
    // Its own failure would be nobody's.
    reader.cancel(reason).catch(() => {})
  }
  const abort = () => {
    abandon(signal.reason)
    fail(signal.reason)
  }
  const relayed = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        fail = (error) => controller.error(error)
        if (signal.aborted) abort()
        else signal.addEventListener('abort', abort, { once: true })
      },
      async pull(controller) {
        if (left <= 0 && cut !== undefined) {
          abandon(cut.error)
          controller.error(cut.error)
          return
        }
        const { done, value } = await reader.read().catch((error: unknown) => {
          end()
          throw error
        })
        if (isOver) return
        if (done) {
          end()
          controller.close()
          return
        }
        const part = value.length > left ? value.subarray(0, left) : value
        left -= part.length
        controller.enqueue(part)
      },
      cancel(reason) {
        abandon(reason)
      },
    },
    { highWaterMark: 0 },
  )
  const { status, statusText, headers } = response
  return new Response(relayed, { status, statusText, headers })
}
