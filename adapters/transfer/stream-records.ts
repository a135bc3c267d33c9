import type { SequencedRecord } from '../../src/index.ts'
import type { ExportedStream } from './export-entry.ts'
import type { OpenStream } from './resume-point.ts'
import { aboutStream, type Service, type StreamFacts } from './service.ts'
import { TransferError } from './transfer-error.ts'

/**
 * The records of a stream below its tail, batch by batch; those that vanish meanwhile are left out. Throws when they are not those of the stream that its
 * export began with, because it was deleted and made anew.
 */
export async function* streamRecords(
  service: Service,
  { stream, nextSeqNum, lastTimestamp }: OpenStream,
  first: readonly SequencedRecord[] = [],
): AsyncGenerator<readonly SequencedRecord[]> {
  const { tail } = stream
  let batch = first
  let timestamp = lastTimestamp
  let position = nextSeqNum
  let hasRead = false
  for (;;) {
    const last = batch.at(-1)
    if (last !== undefined) {
      checkTimes(stream, timestamp, batch)
      timestamp = last.timestamp
      position = last.seqNum + 1
    }
    const next = position < tail.seqNum ? service.read(stream, position) : undefined
    // Whoever stops here does not wait for it.
    next?.catch(() => {})
    if (batch.length > 0) yield batch
    if (next === undefined) break
    hasRead = true
    const read = await next
    if ('tail' in read) {
      if (read.tail.seqNum < tail.seqNum) throw madeAnew(stream)
      break
    }
    batch = read.records.filter(({ seqNum }) => seqNum < tail.seqNum)
    if (batch.length === 0) break
  }
  // What is deleted by now and not made anew has given its own records.
  const found = hasRead ? await service.findStream(stream) : undefined
  if (found !== undefined && isOther(stream, found)) throw madeAnew(stream)
}

/** Before an interrupted export is gone on with. */
export async function checkSame(service: Service, { stream }: OpenStream): Promise<void> {
  const found = await service.findStream(stream)
  // Where a look at a stream makes it, only one that is listed is looked at.
  const tail = found && !isOther(stream, found) ? await service.tail(stream) : undefined
  const isSame = tail && tail.seqNum >= stream.tail.seqNum && tail.timestamp >= stream.tail.timestamp
  if (!isSame) throw madeAnew(stream)
}

/** Timestamps never go back, and the last record has that of the tail. */
function checkTimes(stream: ExportedStream, before: number, batch: readonly SequencedRecord[]): void {
  const { tail } = stream
  const last = batch.at(-1)!
  const isAtTail = last.seqNum === tail.seqNum - 1
  const fits = isAtTail ? last.timestamp === tail.timestamp : last.timestamp <= tail.timestamp
  if (batch[0]!.timestamp < before || !fits) throw madeAnew(stream)
}

function isOther(stream: ExportedStream, { createdAt }: StreamFacts): boolean {
  return createdAt !== undefined && stream.createdAt !== undefined && createdAt !== stream.createdAt
}

function madeAnew(stream: ExportedStream): TransferError {
  return new TransferError(`${aboutStream(stream)} is not what it was when its export began: it was deleted`)
}
