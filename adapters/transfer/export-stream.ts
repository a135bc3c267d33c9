import type { SequencedRecord, StreamTail } from '../../src/index.ts'
import type { ExportedStream } from './export-entry.ts'
import type { OpenStream } from './resume-point.ts'
import { type ListedStream, type Service, streamLabel } from './service.ts'
import { isGone, TransferError } from './transfer-error.ts'

/** Attempts to read a consistent state of a stream that keeps changing. */
const ATTEMPTS_MAX = 5

interface StartedStream {
  readonly stream: ExportedStream
  readonly first: readonly SequencedRecord[]
}

/**
 * Reads the state of a listed stream and its first records. Resolves to undefined if it was deleted since.
 */
export async function startStream(
  service: Service,
  listed: ListedStream,
): Promise<StartedStream | undefined> {
  let facts = listed
  try {
    for (let i = 0; i < ATTEMPTS_MAX; i++) {
      const started = await readStart(service, facts)
      const found = started && (await service.findStream(facts))
      if (found === undefined) return undefined
      // With the same creation time it was the same stream all along.
      if (found.createdAt === facts.createdAt) return started
      facts = found
    }
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
  throw new TransferError(`${streamLabel(listed)} is repeatedly deleted and created`)
}

async function readStart(service: Service, facts: ListedStream): Promise<StartedStream | undefined> {
  const config = await service.streamConfig(facts)
  const snapshot = config && (await snapshotOf(service, facts))
  if (config === undefined || snapshot === undefined) return undefined
  const { tail, fencingToken } = snapshot
  const read = tail.seqNum === 0 ? { tail } : await service.read(facts, 0)
  const first = 'records' in read ? read.records.filter(({ seqNum }) => seqNum < tail.seqNum) : []
  const start = first[0]?.seqNum ?? tail.seqNum
  return { stream: { ...facts, config, start, tail, fencingToken }, first }
}

/** Reads a tail and the fencing token at that tail: the token must be the same before and after. */
async function snapshotOf(
  service: Service,
  facts: ListedStream,
): Promise<{ tail: StreamTail; fencingToken: string | undefined } | undefined> {
  let tail = await service.tail(facts)
  // A stream without records was never fenced.
  if (tail === undefined || tail.seqNum === 0) return tail && { tail, fencingToken: '' }
  if (facts.cipher !== null && !service.hasKey) {
    throw new TransferError(`${streamLabel(facts)} is encrypted; a key is required`)
  }
  let before = await service.fencingToken(facts)
  for (let i = 0; i < ATTEMPTS_MAX; i++) {
    const next = await service.tail(facts)
    if (next === undefined) return undefined
    if (next.seqNum === tail.seqNum) return { tail, fencingToken: before }
    tail = next
    const after = await service.fencingToken(facts)
    if (after === before) return { tail, fencingToken: after }
    before = after
  }
  return { tail, fencingToken: undefined }
}

/**
 * Yields the records of a stream below its exported tail in batches, without records that are trimmed
 * meanwhile.
 *
 * @throws TransferError if the stream was deleted and created again.
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
    // The consumer may stop at this batch; then nothing awaits the next one.
    next?.catch(() => {})
    if (batch.length > 0) yield batch
    if (next === undefined) break
    hasRead = true
    const read = await next
    if ('tail' in read) {
      if (read.tail.seqNum < tail.seqNum) throw recreated(stream)
      break
    }
    batch = read.records.filter(({ seqNum }) => seqNum < tail.seqNum)
    if (batch.length === 0) break
  }
  // A stream that is deleted by now, and was not created again, gave its own records.
  const found = hasRead ? await service.findStream(stream) : undefined
  if (found !== undefined && isOther(stream, found)) throw recreated(stream)
}

/**
 * Throws {@link TransferError} if an interrupted export cannot be continued, because the stream is another
 * one.
 */
export async function checkUnchanged(service: Service, { stream }: OpenStream): Promise<void> {
  const found = await service.findStream(stream)
  // Reading a tail may create the stream, so only a listed one is read.
  const tail = found && !isOther(stream, found) ? await service.tail(stream) : undefined
  const isSame = tail && tail.seqNum >= stream.tail.seqNum && tail.timestamp >= stream.tail.timestamp
  if (!isSame) throw recreated(stream)
}

/** Timestamps never decrease, and the last record has the timestamp of the tail. */
function checkTimes(stream: ExportedStream, before: number, batch: readonly SequencedRecord[]): void {
  const { tail } = stream
  const last = batch.at(-1)!
  const isAtTail = last.seqNum === tail.seqNum - 1
  const fits = isAtTail ? last.timestamp === tail.timestamp : last.timestamp <= tail.timestamp
  if (batch[0]!.timestamp < before || !fits) throw recreated(stream)
}

function isOther(stream: ExportedStream, { createdAt }: ListedStream): boolean {
  return createdAt !== undefined && stream.createdAt !== undefined && createdAt !== stream.createdAt
}

function recreated(stream: ExportedStream): TransferError {
  return new TransferError(`${streamLabel(stream)} was deleted and created again since its export began`)
}
