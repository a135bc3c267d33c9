import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { COPY_CONFIG } from './local-copy.ts'

/** Returns the stream of the records before `end`. Streams of copies that were replaced have other names. */
export function segmentStream(local: Stream, identity: string, end: number, autoCreate = false): Stream {
  return local.sibling(`.earlier/${identity}/${end}`, { autoCreate, config: COPY_CONFIG })
}

/** Resolves to the sequence number of the first record of a stream, or its tail if it has none. */
export async function firstSeqNum(stream: Stream): Promise<number> {
  const { records } = await stream.readBatch({ count: 1 }, { as: 'bytes' })
  return records[0]?.seqNum ?? (await stream.checkTail()).seqNum
}

/** Deletes the stream unless it does not exist. */
export async function deleteIfPresent(stream: Stream): Promise<void> {
  try {
    await stream.delete()
  } catch (error) {
    if (!isStreamMissing(error)) throw error
  }
}
