import type { NodeRequest } from './node-exchange.ts'

/**
 * A request body as a web stream that reads only when it is asked to.
 *
 * Not `Readable.toWeb`: that one buffers up to 16,384 chunks of any size ahead of its reader, and its `cancel` destroys the socket
 * before the refusal that made the handler cancel can be sent. Here a cancelled body is read and dropped.
 */
export function readRequestBody(source: NodeRequest): ReadableStream<Uint8Array> {
  let stop: (() => void) | undefined

  function start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const onData = (chunk: Uint8Array) => {
      source.pause()
      controller.enqueue(chunk)
    }
    const onEnd = () => {
      // An HTTP/2 request that was reset ends like a complete one.
      if (source.aborted) {
        onFailure()
        return
      }
      stop?.()
      controller.close()
    }
    const onFailure = (error?: Error) => {
      stop?.()
      controller.error(error ?? new DOMException('The request body was cut off', 'AbortError'))
    }
    stop = () => {
      source.off('data', onData)
      source.off('end', onEnd)
      source.off('error', onFailure)
      source.off('close', onFailure)
    }
    if (source.readableEnded) onEnd()
    else if (source.destroyed) onFailure(source.errored ?? undefined)
    else source.on('data', onData).once('end', onEnd).once('error', onFailure).once('close', onFailure)
  }

  return new ReadableStream<Uint8Array>(
    {
      // Listening starts with the first read, so that Node still sees an untouched body as one to discard.
      pull(controller) {
        if (!stop) start(controller)
        source.resume()
      },
      cancel() {
        stop?.()
        stop = () => {}
        source.resume()
      },
    },
    { highWaterMark: 0 },
  )
}
