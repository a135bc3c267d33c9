import type { RetentionExtension } from '../../src/core/retention.ts'
import { type WriteState, withAppend } from '../../src/core/sequence.ts'
import type {
  AppendRequest,
  Head,
  ReadRange,
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
  /** Makes the next append. */
  session: StorageSession
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

  /** Continues with another session, or after another head. */
  copy({
    session = this.session,
    head = this.head,
  }: Partial<Pick<LogWriter, 'session' | 'head'>>): LogWriter {
    return new LogWriter(session, this.logId, head, this.written)
  }

  /** Throws unless the log has the head and the records that were written, and is measured correctly. */
  async check(session = this.session): Promise<void> {
    equal(await session.head(this.logId), this.head, `head of ${this.logId}`)
    checkRead(this.written, WHOLE_LOG, await this.measured(session))
  }

  /** Reads, and throws unless the result is that of a log to which the blocks were written. */
  async read(part: Partial<ReadRange> = {}, session = this.session): Promise<StoredBlock[]> {
    const range = { ...WHOLE_LOG, ...part }
    const blocks = await session.read(this.logId, range)
    checkRead(this.written, range, blocks)
    return blocks
  }

  /** Resolves to the stored blocks. Throws unless `measure` counts their metered bytes. */
  async measured(session = this.session): Promise<StoredBlock[]> {
    const blocks = await session.read(this.logId, WHOLE_LOG)
    const bytes = blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
    equal(await session.measure([this.logId]), [bytes], `metered bytes of ${this.logId}`)
    return blocks
  }

  /** The sequence numbers of the stored records. */
  async records(session = this.session): Promise<number[]> {
    return seqNumsOf(await session.read(this.logId, WHOLE_LOG))
  }

  /** Returns the next append, and assumes that it succeeds. */
  request({ blocks: count = 1, trimPoint, trimmedAt = NOW, ...spec }: AppendSpec = {}): AppendRequest {
    const { head, logId } = this
    const writeState = spec.writeState ?? head.writeState
    const blocks = [block({ ...spec, firstSeqNum: head.tail.seqNum })]
    while (blocks.length < count) blocks.push(block({ ...spec, firstSeqNum: blocks.at(-1)!.endSeqNum }))
    const { endSeqNum, lastTimestamp } = blocks.at(-1)!
    const isTrimmed = trimPoint !== undefined && trimPoint !== head.trimPoint
    this.head = {
      epoch: head.epoch,
      tail: { seqNum: endSeqNum, timestamp: lastTimestamp },
      trimPoint: trimPoint ?? head.trimPoint,
      fencingToken: spec.fencingToken ?? head.fencingToken,
      appendId: `append-${++appends}`,
      appendedAt: NOW + endSeqNum,
      trims: isTrimmed ? [...head.trims.slice(-2), { point: trimPoint, at: trimmedAt }] : head.trims,
      ...(head.extensions && { extensions: head.extensions }),
      ...(writeState && { writeState }),
    }
    const isExtended = head.extensions !== undefined
    for (const block of blocks) this.written.push({ block, mayBeFreed: false, isExtended })
    return { logId, expected: identityOf(head), blocks, head: this.head }
  }

  /** Begins the next epoch, and sets the extensions with it. */
  async reconfigure(extensions?: readonly RetentionExtension[]): Promise<void> {
    const epoch = this.head.epoch + 1
    const changed = extensions && { extensions }
    await this.session.commit([{ kind: 'set-epoch', logId: this.logId, epoch, ...changed }])
    this.head = { ...this.head, epoch, ...changed }
    for (const expected of this.written) expected.isExtended ||= extensions !== undefined
  }

  /** Resolves to the first block. Its rejection is not unhandled if a test that fails does not await it. */
  append(spec: AppendSpec = {}): Promise<StoredBlock> {
    const request = this.request(spec)
    const appended = this.session.append(request).then(() => request.blocks[0]!)
    appended.catch(() => {})
    return appended
  }

  /** Appends `count` blocks that a storage must not merge, because no other block has their expiry. */
  async appendUnmergeable(count: number, spec: AppendSpec = {}): Promise<void> {
    for (let i = 0; i < count; i++) {
      await this.append({ ...spec, expiresAt: FAR_EXPIRIES + this.head.tail.seqNum })
    }
  }

  /** Returns the write state after another append of a producer. */
  afterProducer(id: string, seq: number, before = this.head.writeState): WriteState {
    const { tail } = this.head
    const end = { seqNum: tail.seqNum + 1, timestamp: Math.max(tail.timestamp, NOW) }
    return withAppend(before, { producer: { id, epoch: seq % 3, seq } }, { start: tail, end }, NOW)!
  }

  /** Yields write states in the order in which an engine might leave them. */
  *writeStates(): Generator<WriteState> {
    yield this.afterProducer('\u{1f600}', 0)
    yield { ...this.head.writeState, streamSeq: '\u0000 \ue000' }
    yield this.afterProducer('p', Number.MAX_SAFE_INTEGER)
    yield this.afterProducer('\u{1f600}', 1)
    yield { ...this.afterProducer('q', 0), closed: true }
  }
}

const FAR_EXPIRIES = NOW + 1_000_000_000

/** More calls than any test needs: stops a storage that always reports more. */
const CALLS_MAX = 1000

/**
 * Reclaims until nothing is left; nothing is due by default. Resolves to the logs that were reported, each
 * once.
 */
export async function reclaimAll(
  session: StorageSession,
  limits: Partial<ReclaimLimits> = {},
): Promise<string[]> {
  const reported = new Set<string>()
  for (let call = 0; ; call++) {
    const { more, logIds } = await session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 1000, ...limits })
    equal(new Set(logIds).size, logIds.length, 'number of logs that one call reports')
    for (const logId of logIds) reported.add(logId)
    if (!more) return [...reported].sort()
    ok(call < CALLS_MAX, 'reclaim always reports that more is left')
  }
}
