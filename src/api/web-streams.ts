import type { InputSink } from './append-all.ts'
import type { AppendSession } from './append-session.ts'

/** A readable stream of what an iterator yields. It takes one item ahead of its reader. */
export function readableOf<Item>(items: AsyncGenerator<Item, void, undefined>): ReadableStream<Item> {
  return new ReadableStream<Item>({
    async pull(controller) {
      const { done, value } = await items.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await items.return()
    },
  })
}

/** A writable stream that submits its chunks to a session, which it opens when it is made. */
export function writableTo<Chunk>({ open, submit }: InputSink<Chunk>): WritableStream<Chunk> {
  let session: AppendSession | undefined
  // Chunks that were written before are still appended. The writer has a reason of its own.
  const end = async () => session?.close().catch(() => {})
  return new WritableStream<Chunk>({
    async start() {
      session = await open()
    },
    async write(chunk, controller) {
      try {
        // A stream is aborted only when its write has ended.
        await submit(session!, chunk, controller.signal)
      } catch (error) {
        // A failed stream calls neither `close` nor `abort`.
        void end()
        throw error
      }
    },
    async close() {
      await session!.close()
    },
    abort: end,
  })
}
