import {
  type AppendRequest,
  type Head,
  identityOf,
  type StorageSession,
  type StoredBlock,
} from '../contract.ts'
import { emptyHead } from '../empty-head.ts'
import { type BlockSpec, block, NOW } from './blocks.ts'
import type { ExpectedBlock } from './read-oracle.ts'

export interface AppendSpec extends Omit<BlockSpec, 'firstSeqNum'> {
  readonly trimPoint?: number
  readonly trimmedAt?: number
  readonly fencingToken?: string
}

/** Everything from the start of a log; reads go from here unless they are about where to start. */
export const WHOLE_LOG = {
  from: { seqNum: 0 },
  endSeqNum: Number.MAX_SAFE_INTEGER,
  bytesMax: Number.MAX_SAFE_INTEGER,
}

let appends = 0

/** Does what an engine does: knows the head of a log, and computes the next append from it. */
export class LogWriter {
  readonly logId: string
  head: Head
  /** What was appended, for `checkRead`. */
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

  /** The next append, and takes it for done. */
  request(spec: AppendSpec = {}): AppendRequest {
    const { head } = this
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
    }
    this.written.push({ block: added, mayBeGone: false })
    return {
      logId: this.logId,
      expected: identityOf(head),
      block: added,
      head: this.head,
    }
  }

  append(spec: AppendSpec = {}): Promise<StoredBlock> {
    const request = this.request(spec)
    const appended = this.#session.append(request).then(() => request.block)
    // A test that fails leaves appends behind that nobody waits for; their rejections say nothing new.
    appended.catch(() => {})
    return appended
  }

  /** Appends `count` blocks that no storage may merge. */
  async appendUnmergeable(count: number, spec: AppendSpec = {}): Promise<void> {
    for (let i = 0; i < count; i++) await this.append({ ...spec, expiresAt: unmergeableExpiry(this.head) })
  }
}

/** An expiry that no other block of the log has. */
export function unmergeableExpiry(head: Head): number {
  return NOW + 1_000_000_000 + head.tail.seqNum
}
