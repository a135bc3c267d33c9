import type { RetentionExtension } from '../../src/core/retention.ts'
import type { WriteState } from '../../src/core/sequence.ts'
import type {
  AppendRequest,
  Head,
  ReclaimLimits,
  StorageSession,
  StoredBlock,
} from '../../src/storage/contract.ts'
import { emptyHead, identityOf } from '../../src/storage/heads.ts'
import { equal, ok } from './assertions.ts'
import { type BlockSpec, block, checkRead, type ExpectedBlock, NOW, seqNumsOf, WHOLE_LOG } from './blocks.ts'

export interface AppendSpec extends Omit<BlockSpec, 'firstSeqNum'> {
  /** Number of blocks, each as the other members say. 1 by default. */
  readonly blocks?: number | undefined
  readonly trimPoint?: number | undefined
  readonly trimmedAt?: number | undefined
  readonly fencingToken?: string | undefined
  /** That of the head by default. */
  readonly writeState?: WriteState | undefined
}

let appends = 0

/** Computes appends from the head of a log, as an engine does. */
export class LogWriter {
  readonly session: StorageSession
  readonly logId: string
  head: Head
  /** The appended blocks, for `checkRead`. */
  readonly written: ExpectedBlock[]

  constructor(
    session: StorageSession,
    logId: string,
    head: Head = emptyHead(1, NOW),
    written: readonly ExpectedBlock[] = [],
  ) {
    this.session = session
    this.logId = logId
    this.head = head
    this.written = [...written]
  }

  /** Creates the log with epoch 1 at `NOW`. */
  static async create(session: StorageSession, logId: string): Promise<LogWriter> {
    await session.commit([{ kind: 'create-log', logId, epoch: 1, createdAt: NOW }])
    return new LogWriter(session, logId)
  }

  /** Throws unless the log has the head and the records that were written. */
  async check(session = this.session): Promise<void> {
    equal(await session.head(this.logId), this.head, `head of ${this.logId}`)
    checkRead(this.written, WHOLE_LOG, await session.read(this.logId, WHOLE_LOG))
  }

  /** The sequence numbers of the stored records. */
  async records(session = this.session): Promise<number[]> {
    return seqNumsOf(await session.read(this.logId, WHOLE_LOG))
  }

  /** Throws unless `measure` counts the metered bytes of the stored blocks, and returns them. */
  async measured(session = this.session): Promise<number> {
    const blocks = await session.read(this.logId, WHOLE_LOG)
    const bytes = blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
    equal(await session.measure([this.logId]), [bytes], `metered bytes of ${this.logId}`)
    return bytes
  }

  /** Returns the next append, and assumes that it succeeds. */
  request(spec: AppendSpec = {}): AppendRequest {
    const { head } = this
    const writeState = spec.writeState ?? head.writeState
    const blocks: StoredBlock[] = []
    for (let i = 0; i < (spec.blocks ?? 1); i++) {
      const firstSeqNum = blocks.at(-1)?.endSeqNum ?? head.tail.seqNum
      blocks.push(block({ ...spec, firstSeqNum }))
    }
    const { endSeqNum, lastTimestamp } = blocks.at(-1)!
    this.head = {
      epoch: head.epoch,
      tail: { seqNum: endSeqNum, timestamp: lastTimestamp },
      trimPoint: spec.trimPoint ?? head.trimPoint,
      fencingToken: spec.fencingToken ?? head.fencingToken,
      appendId: `append-${++appends}`,
      appendedAt: NOW + endSeqNum,
      trims:
        spec.trimPoint === undefined || spec.trimPoint === head.trimPoint
          ? head.trims
          : [...head.trims.slice(-2), { point: spec.trimPoint, at: spec.trimmedAt ?? NOW }],
      ...(head.extensions && { extensions: head.extensions }),
      ...(writeState && { writeState }),
    }
    for (const block of blocks) this.written.push({ block, mayBeFreed: false })
    return {
      logId: this.logId,
      expected: identityOf(head),
      blocks,
      head: this.head,
    }
  }

  /** Sets the extensions, and the next epoch with them. */
  async extend(extensions: readonly RetentionExtension[]): Promise<void> {
    const epoch = this.head.epoch + 1
    await this.session.commit([{ kind: 'set-epoch', logId: this.logId, epoch, extensions }])
    this.head = { ...this.head, epoch, extensions }
  }

  /** Resolves to the first block. */
  append(spec: AppendSpec = {}): Promise<StoredBlock> {
    const request = this.request(spec)
    const appended = this.session.append(request).then(() => request.blocks[0]!)
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

/** More calls than any test needs: stops a storage that always reports more. */
const CALLS_MAX = 1000

/** Reclaims until nothing is left. Resolves to the logs that were reported. */
export async function reclaimAll(session: StorageSession, limits: ReclaimLimits): Promise<string[]> {
  const reported: string[] = []
  for (let call = 0; ; call++) {
    const { more, logIds } = await session.reclaim(limits)
    equal(new Set(logIds).size, logIds.length, 'number of logs that one call reports')
    reported.push(...logIds)
    if (!more) return reported
    ok(call < CALLS_MAX, 'reclaim always reports that more is left')
  }
}
