import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Collection, Head } from '../../../src/storage/contract.ts'
import type { WriteStateChange } from '../../../src/storage/heads.ts'
import { Fields, type Row } from './format.ts'

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
export interface BlockChange {
  readonly kind: 'block'
  readonly log: string
  readonly block: BlockSummary
  /** With the last block of an append: the head, but its extensions and write state, which stay. */
  readonly head?: Head | undefined
  /** What the append changes of the write state. */
  readonly writeState?: WriteStateChange | undefined
}

/** Frees all blocks that end at or below `below`. */
export interface FreeChange {
  readonly kind: 'free'
  readonly log: string
  readonly below: number
  /** What it frees. */
  readonly meteredBytes: number
  /** The block behind them, if it is in the same run as the last one. */
  readonly next: FirstBlock | null
}

/** The part of a block that tells when it can be freed. */
export type FirstBlock = Pick<BlockSummary, 'firstSeqNum' | 'endSeqNum' | 'expiresAt'>

const SUMMARY = new Fields<BlockSummary>(
  'firstSeqNum',
  'endSeqNum',
  'firstTimestamp',
  'lastTimestamp',
  'meteredBytes',
  'expiresAt',
)
/** A head without what few have. */
const HEAD = new Fields<Omit<Head, 'extensions' | 'writeState'>>(
  'epoch',
  'tail',
  'trimPoint',
  'fencingToken',
  'appendId',
  'appendedAt',
  'trims',
)

/** Makes the JSON of a change. There is one block for each append. Persisted: keep stable. */
export function encodeChange(change: Change): unknown {
  if (change.kind !== 'block') return change
  const { block, head } = change
  return { ...change, block: SUMMARY.encode(block), head: head && HEAD.encode(head) }
}

/** @param encoded What {@link encodeChange} returned, after JSON. */
export function decodeChange(encoded: unknown): Change {
  const change = encoded as Change
  if (change.kind !== 'block') return change
  const { block, head } = encoded as { readonly block: Row; readonly head?: Row }
  return { ...change, block: SUMMARY.decode(block), head: head && HEAD.decode(head) }
}

export function encodeHead(head: Head): Row {
  const { extensions, writeState } = head
  return extensions || writeState ? [...HEAD.encode(head), { extensions, writeState }] : HEAD.encode(head)
}

export function decodeHead(row: Row): Head {
  return { ...HEAD.decode(row), ...(row[7] as Pick<Head, 'extensions' | 'writeState'> | undefined) }
}
