export interface RelayOptions {
  /** Aborting it fails the body with its reason and cancels the source. */
  readonly signal: AbortSignal
  /** Called once when the body has ended, failed or was cancelled. */
  readonly onEnd?: (() => void) | undefined
  /** Fails the body with the error after this many bytes. A shorter body arrives completely. */
  readonly cut?: { readonly afterBytes: number; readonly error: unknown } | undefined
}

/** Returns the same response with a body that can be aborted or cut. Does not read ahead. */
export function relayedResponse(response: Response, { signal, onEnd, cut }: RelayOptions): Response {
  const { body } = response
  if (body === null) {
    onEnd?.()
    return response
  }
  const reader = body.getReader()
  let bytesLeft = cut?.afterBytes ?? Number.POSITIVE_INFINITY
  let fail = (_error: unknown): void => {}
  let hasEnded = false
  const end = () => {
    if (hasEnded) return
    hasEnded = true
    signal.removeEventListener('abort', abort)
    onEnd?.()
  }
  const abandon = (reason: unknown) => {
    end()
    // The body fails with `reason` already; a failure to cancel must not be an unhandled rejection.
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
        if (bytesLeft <= 0 && cut !== undefined) {
          abandon(cut.error)
          controller.error(cut.error)
          return
        }
        const { done, value } = await reader.read().catch((error: unknown) => {
          end()
          throw error
        })
        if (hasEnded) return
        if (done) {
          end()
          controller.close()
          return
        }
        const part = value.length > bytesLeft ? value.subarray(0, bytesLeft) : value
        bytesLeft -= part.length
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

/**
 * The error with which `fetch` in Node rejects. Its code tells clients whether the request may have arrived.
 */
export function fetchFailed(code: 'ECONNREFUSED' | 'ECONNRESET', message: string): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) })
}

/** The error of a response body whose connection was lost. */
export function terminated(message: string): TypeError {
  return new TypeError('terminated', { cause: Object.assign(new Error(message), { code: 'UND_ERR_SOCKET' }) })
}
