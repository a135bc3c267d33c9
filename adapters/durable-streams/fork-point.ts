import type { EngineStream } from '../../src/index.ts'
import type { ForkRequest } from './create-request.ts'
import { DurableStreamsError } from './durable-streams-error.ts'
import type { DescribedStream } from './state.ts'

/** Where a fork ends its copy. */
export interface ForkPoint {
  /** Exclusive. Undefined is the tail. */
  readonly seqNum: number | undefined
  /** The beginning of the next record. */
  readonly part: Uint8Array | undefined
}

/**
 * Finds the end of a fork: `within` bytes after an offset, or messages of a JSON stream. Throws 400 if the
 * source has fewer.
 */
export async function forkPoint(
  stream: EngineStream,
  { content, tail }: DescribedStream,
  { seqNum, within }: ForkRequest,
): Promise<ForkPoint> {
  if (seqNum !== undefined && seqNum > tail.seqNum) throw new DurableStreamsError(400, BEYOND)
  if (seqNum === undefined || within === 0) return { seqNum, part: undefined }
  const countsMessages = content.empty !== ''
  let left = within
  for (let next = seqNum; next < tail.seqNum; ) {
    const batch = await stream.readUnary({ seqNum: next }, { allowsEmpty: 'always' })
    if (batch.count === 0) break
    for (const record of batch.withoutCommands().records) {
      const size = countsMessages ? 1 : record.body.length
      if (left < size) return { seqNum: record.seqNum, part: record.body.slice(0, left) }
      left -= size
      if (left === 0) return { seqNum: record.seqNum + 1, part: undefined }
    }
    next = batch.lastSeqNum + 1
  }
  const unit = countsMessages ? 'messages' : 'bytes'
  throw new DurableStreamsError(400, `${BEYOND}: \`stream-fork-sub-offset\` exceeds the ${unit} after it`)
}

const BEYOND = 'the offset of the fork is beyond the end of its source'
