import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { COPY_CONFIG } from './local-copy.ts'

/** Returns the stream of the records before `end`. Streams of copies that were replaced have other names. */
export function segmentStream(local: Stream, identity: string, end: number): Stream {
  return local.sibling(`.earlier/${identity}/${end}`, { autoCreate: false, config: COPY_CONFIG })
}

/** Resolves to the sequence number of the first record of a stream, or its tail if it has none. */
export async function firstSeqNum(stream: Stream): Promise<number> {
  const { records } = await stream.readBatch({ count: 1 }, { as: 'bytes' })
  return records[0]?.seqNum ?? (await stream.checkTail()).seqNum
}

/** Resolves to the record with a sequence number; to undefined if the stream does not have it. */
export async function recordAt(stream: Stream, seqNum: number): Promise<SequencedRecord | undefined> {
  const { records } = await stream.readBatch({ seqNum, count: 1, clamp: true }, { as: 'bytes' })
  return records[0]?.seqNum === seqNum ? records[0] : undefined
}

/** Deletes the stream unless it does not exist. */
export async function deleteIfPresent(stream: Stream): Promise<void> {
  try {
    await stream.delete()
  } catch (error) {
    if (!isStreamMissing(error)) throw error
  }
}

/** Earlier records of a copy that are stored in a stream of their own: from `start` to before `end`. */
interface EarlierSegment {
  readonly stream: Stream
  readonly start: number
  readonly end: number
  /** The timestamp of the last record. */
  readonly timestamp: number
}

/**
 * Resolves to the complete segments before a copy, the latest one first. Each is named by its end, which is
 * where the one after it starts. Segments of records that the copy trimmed are not found any more. With
 * `isWhole: false`, includes at the end what an interrupted fetch left.
 */
export async function earlierSegments(
  local: Stream,
  identity: string,
  isWhole = true,
): Promise<EarlierSegment[]> {
  const segments: EarlierSegment[] = []
  for (let end = await firstSeqNum(local); end > 0; ) {
    const stream = segmentStream(local, identity, end)
    try {
      const { seqNum, timestamp } = await stream.checkTail()
      const start = await firstSeqNum(stream)
      if ((isWhole && seqNum !== end) || start === end) break
      segments.push({ stream, start, end, timestamp })
      end = start
    } catch (error) {
      if (isStreamMissing(error)) break
      throw error
    }
  }
  return segments
}

/** Deletes the segments with records below a sequence number. */
export async function dropEarlier(local: Stream, identity: string, below: number): Promise<void> {
  const segments = await earlierSegments(local, identity, false)
  // The earliest first: the later ones lead to it.
  for (const { stream, start } of segments.reverse()) {
    if (start < below) await deleteIfPresent(stream)
  }
}
