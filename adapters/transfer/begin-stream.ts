import type { SequencedRecord, StreamPosition } from '../../src/index.ts'
import type { ExportedStream } from './export-entry.ts'
import { aboutStream, type Service, type StreamFacts } from './service.ts'
import { isGone, TransferError } from './transfer-error.ts'

/** A stream that changes while it is looked at is looked at again this often. */
const ATTEMPTS_MAX = 5

/** What the export of a stream begins with. */
interface BegunStream {
  readonly stream: ExportedStream
  readonly first: readonly SequencedRecord[]
}

/** A stream that was listed, as it is now, and its first records. Undefined when it was deleted since. */
export async function beginStream(service: Service, listed: StreamFacts): Promise<BegunStream | undefined> {
  let facts = listed
  try {
    for (let i = 0; i < ATTEMPTS_MAX; i++) {
      const begun = await lookAt(service, facts)
      const found = begun && (await service.findStream(facts))
      if (found === undefined) return undefined
      // Made when the list says, it was the same stream all the time.
      if (found.createdAt === facts.createdAt) return begun
      facts = found
    }
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
  throw new TransferError(`${aboutStream(listed)} is deleted and made anew again and again`)
}

async function lookAt(service: Service, facts: StreamFacts): Promise<BegunStream | undefined> {
  const config = await service.streamConfig(facts)
  const snapshot = config && (await snapshotOf(service, facts))
  if (config === undefined || snapshot === undefined) return undefined
  const { tail, fencingToken } = snapshot
  const read = tail.seqNum === 0 ? { tail } : await service.read(facts, 0)
  const first = 'records' in read ? read.records.filter(({ seqNum }) => seqNum < tail.seqNum) : []
  const start = first[0]?.seqNum ?? tail.seqNum
  return { stream: { ...facts, config, start, tail, fencingToken }, first }
}

/** A tail and the fencing token that the stream had at that tail: it is the same before and after. */
async function snapshotOf(
  service: Service,
  facts: StreamFacts,
): Promise<{ tail: StreamPosition; fencingToken: string | undefined } | undefined> {
  let tail = await service.tail(facts)
  // Without records there was no fence either.
  if (tail === undefined || tail.seqNum === 0) return tail && { tail, fencingToken: '' }
  if (facts.cipher !== null && !service.hasKey) {
    throw new TransferError(`${aboutStream(facts)} is encrypted, and there is no key for it`)
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
