import type { NodeRequest } from './node-exchange.ts'

/**
 * The body that `srvx` makes of a Node request, but one that is cancelled, or never read, is dropped as it comes. `srvx` would destroy
 * the request instead, after which Node takes nothing more from an HTTP/1.1 connection: the client could neither end its upload nor
 * send its next request.
 */
export function readRequestBody(request: Request, req: NodeRequest): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined

  async function drain(body: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    while (!(await body.read()).done);
  }

  return new ReadableStream<Uint8Array>(
    {
      // `srvx` pauses the request when it makes the body: not before somebody reads it.
      async pull(controller) {
        reader ??= request.body!.getReader()
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel() {
        if (reader) drain(reader).catch(() => {})
        else req.resume()
      },
    },
    { highWaterMark: 0 },
  )
}
