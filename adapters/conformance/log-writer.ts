import type { RetentionExtension } from '../../src/core/retention.ts'
import type { WriteState } from '../../src/core/sequence.ts'
import { utf8 } from '../../src/model/bytes.ts'
import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
} from '../../src/model/limits.ts'
import { meteredBytesOf, type SequencedRecord } from '../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../src/storage/block-codec.ts'
import type { AppendRequest, Head, StorageSession, StoredBlock } from '../../src/storage/contract.ts'
import { emptyHead, identityOf } from '../../src/storage/heads.ts'
import { equal, ok } from './harness.ts'

/** A block as it was appended. */
export interface ExpectedBlock {
  readonly block: StoredBlock
  /** Whether the storage may have freed it. */
  mayBeFreed: boolean
  /** Whether its expiry may have been replaced by a later one, because its log was extended. */
  isExtended?: boolean | undefined
}

export interface AppendSpec extends Omit<BlockSpec, 'firstSeqNum'> {
  readonly trimPoint?: number | undefined
  readonly trimmedAt?: number | undefined
  readonly fencingToken?: string | undefined
  /** That of the head by default. */
  readonly writeState?: WriteState | undefined
}

/** The whole log. */
export const WHOLE_LOG = {
  from: { seqNum: 0 },
  endSeqNum: Number.MAX_SAFE_INTEGER,
  bytesMax: Number.MAX_SAFE_INTEGER,
}

let appends = 0

/** Computes appends from the head of a log, as an engine does. */
export class LogWriter {
  readonly logId: string
  head: Head
  /** The appended blocks, for `checkRead`. */
  readonly written: ExpectedBlock[]
  readonly #session: StorageSession

  constructor(
    session: StorageSession,
    logId: string,
    head: Head = emptyHead(1, NOW),
    written: readonly ExpectedBlock[] = [],
  ) {
    this.#session = session
    this.logId = logId
    this.head = head
    this.written = [...written]
  }

  /** Creates the log with epoch 1 at `NOW`. */
  static async create(session: StorageSession, logId: string): Promise<LogWriter> {
    await session.commit([{ kind: 'create-log', logId, epoch: 1, createdAt: NOW }])
    return new LogWriter(session, logId)
  }

  /** Returns the next append, and assumes that it succeeds. */
  request(spec: AppendSpec = {}): AppendRequest {
    const { head } = this
    const writeState = spec.writeState ?? head.writeState
    const added = block({ ...spec, firstSeqNum: head.tail.seqNum })
    this.head = {
      epoch: head.epoch,
      tail: { seqNum: added.endSeqNum, timestamp: added.lastTimestamp },
      trimPoint: spec.trimPoint ?? head.trimPoint,
      fencingToken: spec.fencingToken ?? head.fencingToken,
      appendId: `append-${++appends}`,
      appendedAt: NOW + added.endSeqNum,
      trims:
        spec.trimPoint === undefined || spec.trimPoint === head.trimPoint
          ? head.trims
          : [...head.trims.slice(-2), { point: spec.trimPoint, at: spec.trimmedAt ?? NOW }],
      ...(head.extensions && { extensions: head.extensions }),
      ...(writeState && { writeState }),
    }
    this.written.push({ block: added, mayBeFreed: false })
    return {
      logId: this.logId,
      expected: identityOf(head),
      block: added,
      head: this.head,
    }
  }

  /** Sets the extensions, and the next epoch with them. */
  async extend(extensions: readonly RetentionExtension[]): Promise<void> {
    const epoch = this.head.epoch + 1
    await this.#session.commit([{ kind: 'set-epoch', logId: this.logId, epoch, extensions }])
    this.head = { ...this.head, epoch, extensions }
  }

  append(spec: AppendSpec = {}): Promise<StoredBlock> {
    const request = this.request(spec)
    const appended = this.#session.append(request).then(() => request.block)
    // A failing test may leave appends that it does not await: their rejections are not news.
    appended.catch(() => {})
    return appended
  }

  /** Appends `count` blocks that a storage must not merge. */
  async appendUnmergeable(count: number, spec: AppendSpec = {}): Promise<void> {
    for (let i = 0; i < count; i++) await this.append({ ...spec, expiresAt: unmergeableExpiry(this.head) })
  }
}

/** An expiry that no other block of the log has. */
export function unmergeableExpiry(head: Head): number {
  return NOW + 1_000_000_000 + head.tail.seqNum
}

/** The time of the tests, in milliseconds. */
export const NOW = 1_700_000_000_000
/** An expiry later than any `now` of the tests. */
export const FAR = NOW + 1_000_000_000

interface BlockSpec {
  readonly firstSeqNum: number
  /** Number of records. 1 by default. */
  readonly count?: number | undefined
  /** Timestamp of all records. `NOW` plus the sequence number by default. */
  readonly timestamp?: number | undefined
  /** Null by default, which lets adjacent blocks be merged. */
  readonly expiresAt?: number | null | undefined
  /** Length of each body. As short as possible by default. */
  readonly bodyBytes?: number | undefined
  /**
   * Number of headers per record, each with a name and a value of one byte: their encoding takes twice their
   * metered size. 0 by default.
   */
  readonly headers?: number | undefined
  /** Included in the bodies, to distinguish two writers. None by default. */
  readonly tag?: string | undefined
}

const SMALL_HEADER = [utf8('n'), utf8('v')] as const

export function block(spec: BlockSpec): StoredBlock {
  const records: SequencedRecord[] = []
  for (let i = 0; i < (spec.count ?? 1); i++) {
    const seqNum = spec.firstSeqNum + i
    const timestamp = spec.timestamp ?? NOW + seqNum
    records.push({
      seqNum,
      timestamp,
      headers: Array.from({ length: spec.headers ?? 0 }, () => SMALL_HEADER),
      body: bodyOf(`${spec.tag ?? ''}#${seqNum}`, spec.bodyBytes),
    })
  }
  return {
    firstSeqNum: spec.firstSeqNum,
    endSeqNum: spec.firstSeqNum + records.length,
    firstTimestamp: records[0]!.timestamp,
    lastTimestamp: records.at(-1)!.timestamp,
    meteredBytes: metered(records),
    expiresAt: spec.expiresAt ?? null,
    data: encodeRecords(records),
  }
}

/**
 * Returns the records of the blocks. Throws unless every block is whole, matches its metadata, is within the
 * limits of merging, and begins at or after the end of the previous one.
 */
export function recordsOfBlocks(blocks: readonly StoredBlock[]): SequencedRecord[] {
  const all: SequencedRecord[] = []
  let end = 0
  for (const { data, expiresAt: _, release: _release, ...numbers } of blocks) {
    const records = decodeRecords(data)
    ok(records.length > 0, 'a block has no records')
    equal(
      numbers,
      {
        firstSeqNum: records[0]!.seqNum,
        endSeqNum: records[0]!.seqNum + records.length,
        firstTimestamp: records[0]!.timestamp,
        lastTimestamp: records.at(-1)!.timestamp,
        meteredBytes: metered(records),
      },
      'metadata of a block',
    )
    records.forEach((record, i) => {
      equal(record.seqNum, numbers.firstSeqNum + i, 'sequence number of a record in a block')
    })
    ok(records.length <= BATCH_RECORDS_MAX, `a block has ${records.length} records`)
    ok(numbers.meteredBytes <= BATCH_METERED_BYTES_MAX, `a block has ${numbers.meteredBytes} metered bytes`)
    ok(data.length <= BATCH_ENCODED_BYTES_MAX, `a block has ${data.length} bytes of data`)
    ok(
      numbers.firstSeqNum >= end,
      `a block begins at ${numbers.firstSeqNum}, but the one before ends at ${end}`,
    )
    end = numbers.endSeqNum
    all.push(...records)
  }
  return all
}

export function seqNumsOf(blocks: readonly StoredBlock[]): number[] {
  return recordsOfBlocks(blocks).map((record) => record.seqNum)
}

/** The numbers from `first` to `end` (exclusive). */
export function range(first: number, end: number): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i)
}

function metered(records: readonly SequencedRecord[]): number {
  return records.reduce((sum, record) => sum + meteredBytesOf(record.headers, record.body), 0)
}

function bodyOf(text: string, length: number | undefined): Uint8Array {
  const bytes = utf8(text)
  if (length === undefined) return bytes
  const body = new Uint8Array(length)
  for (let i = 0; i < length; i++) body[i] = bytes[i] ?? i & 0xff
  return body
}
