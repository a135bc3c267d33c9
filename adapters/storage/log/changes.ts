import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Collection, Head } from '../../../src/storage/contract.ts'
import type { WriteStateChange } from '../../../src/storage/heads.ts'

/**
 * A change of the state, as a frame of a journal holds it. It is written and then applied, and applied again
 * at each opening.
 */
export type Change = DocumentChange | HeadChange | BlockChange | FreeChange

/** A document as it is stored. */
export interface StoredDocument {
  readonly version: number
  /** JSON. */
  readonly text: string
}

interface DocumentChange {
  readonly kind: 'document'
  readonly collection: Collection
  readonly key: string
  /** Null deletes it. */
  readonly content: StoredDocument | null
}

/** Creates a log, or changes its head otherwise than by an append. */
interface HeadChange {
  readonly kind: 'head'
  readonly log: string
  /** Null deletes it. */
  readonly head: Head | null
}

/** Adds a block, whose data the frame holds. */
interface BlockChange {
  readonly kind: 'block'
  readonly log: string
  readonly block: BlockSummary
  /** Whether the next block is of the same block of an append, which was split. */
  readonly isContinued: boolean
  /** With the last block of an append: the head, but its extensions and write state, which stay. */
  readonly head?: Head | undefined
  /** What the append changes of the write state. */
  readonly writeState?: WriteStateChange | undefined
}

/** Frees all blocks that end at or below `below`. */
interface FreeChange {
  readonly kind: 'free'
  readonly log: string
  readonly below: number
  /** What it frees. */
  readonly meteredBytes: number
  /** The block that is the first one afterwards. */
  readonly first: FirstBlock | null
}

/** What tells when a block can be freed. */
export type FirstBlock = Pick<BlockSummary, 'firstSeqNum' | 'endSeqNum' | 'expiresAt'>

/** As JSON: short, because there is one for each append. Persisted: keep stable. */
type EncodedChange = Exclude<Change, BlockChange> | EncodedBlock

interface EncodedBlock extends Pick<BlockChange, 'log' | 'writeState'> {
  /** `part` if it is continued. */
  readonly kind: 'block' | 'part'
  readonly block: EncodedSummary
  readonly head?: EncodedHead | undefined
}

export function encodeChange(change: Change): EncodedChange {
  if (change.kind !== 'block') return change
  const { log, block, isContinued, head, writeState } = change
  return {
    kind: isContinued ? 'part' : 'block',
    log,
    block: encodeSummary(block),
    head: head && encodeFields(head),
    writeState,
  }
}

/** @param payload What {@link encodeChange} returned, after JSON. */
export function decodeChange(payload: unknown): Change {
  const change = payload as EncodedChange
  if (!('block' in change)) return change
  const { kind, log, block, head, writeState } = change
  return {
    kind: 'block',
    log,
    block: decodeSummary(block),
    isContinued: kind === 'part',
    head: head && decodeHead(head),
    writeState,
  }
}

type EncodedSummary = ReturnType<typeof encodeSummary>

function encodeSummary(block: BlockSummary) {
  const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt } = block
  const count = endSeqNum - firstSeqNum
  return [
    firstSeqNum,
    count,
    firstTimestamp,
    lastTimestamp - firstTimestamp,
    meteredBytes,
    expiresAt,
  ] as const
}

function decodeSummary(encoded: EncodedSummary): BlockSummary {
  const [firstSeqNum, count, firstTimestamp, duration, meteredBytes, expiresAt] = encoded
  const [endSeqNum, lastTimestamp] = [firstSeqNum + count, firstTimestamp + duration]
  return { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt }
}

export type EncodedHead = ReturnType<typeof encodeHead>

export function encodeHead(head: Head) {
  const { extensions, writeState } = head
  const fields = encodeFields(head)
  return extensions || writeState ? ([...fields, { extensions, writeState }] as const) : fields
}

/** Leaves out extensions and write state. */
function encodeFields(head: Head) {
  const { epoch, tail, trimPoint, fencingToken, appendId, appendedAt, trims } = head
  const { seqNum, timestamp } = tail
  return [epoch, seqNum, timestamp, trimPoint, fencingToken, appendId, appendedAt, trims] as const
}

export function decodeHead(encoded: EncodedHead): Head {
  const [epoch, seqNum, timestamp, trimPoint, fencingToken, appendId, appendedAt, trims, others] = encoded
  const tail = { seqNum, timestamp }
  return { epoch, tail, trimPoint, fencingToken, appendId, appendedAt, trims, ...others }
}
