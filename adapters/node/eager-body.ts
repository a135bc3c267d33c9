type BodyReader = ReadableStreamDefaultReader<Uint8Array>
type BodyRead = Awaited<ReturnType<BodyReader['read']>>

/** What a body gave without being waited for. */
export interface EagerBody {
  readonly chunks: readonly Uint8Array[]
  /** The read after `chunks`, still to be awaited; `undefined` when the body has ended. */
  readonly next: Promise<BodyRead> | undefined
}

/**
 * Reads what is ready within one turn of the event loop, at most two chunks. A body made from a string or from bytes is whole then,
 * so that it goes out with its length, in one piece with its headers. The headers of a live stream wait no longer than that turn.
 */
export async function readEagerly(reader: BodyReader): Promise<EagerBody> {
  const turn = new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined)))
  const chunks: Uint8Array[] = []
  for (;;) {
    const next = reader.read()
    // A failure is reported to whoever awaits `next`, which may be later.
    next.catch(() => {})
    const read = await Promise.race([next, turn])
    if (!read) return { chunks, next }
    if (read.done) return { chunks, next: undefined }
    chunks.push(read.value)
    if (chunks.length === 2) return { chunks, next: reader.read() }
  }
}
