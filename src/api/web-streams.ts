import type { AppendSession, AppendTicket } from './append-session.ts'

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
export function writableTo<Chunk>(
  open: () => Promise<AppendSession>,
  submit: (session: AppendSession, chunk: Chunk) => Promise<AppendTicket>,
): WritableStream<Chunk> {
  let session: AppendSession | undefined
  return new WritableStream<Chunk>({
    async start() {
      session = await open()
    },
    async write(chunk) {
      await submit(session!, chunk)
    },
    async close() {
      await session!.close()
    },
    async abort() {
      // Chunks that were written before are still appended. The abort has a reason of its own.
      await session?.close().catch(() => {})
    },
  })
}
