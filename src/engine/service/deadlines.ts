import {
  decideDeleteOnEmpty,
  decideExpiry,
  isReadRecorded,
  type LifetimeDecision,
  streamExpiresAt,
} from '../../core/lifetime.ts'
import { blockExpiresAt, isBlockExpired } from '../../core/retention.ts'
import type { StreamRef } from '../../model/names.ts'
import type { CatalogChange, Head } from '../../storage/contract.ts'
import {
  DEADLINE_KINDS,
  type DeadlineDocument,
  deadlineKey,
  deadlinePrefix,
  deadlineTimeOf,
  putDeadline,
  putStream,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import type { EngineContext } from '../context.ts'
import { nameReserved } from '../errors.ts'
import type { StreamLog } from '../log/stream-log.ts'
import { type Catalog, type Commit, unlessConflicting } from '../streams/catalog.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'

export interface DeadlinesContext extends EngineContext {
  readonly catalog: Catalog
  readonly confirmedClock: ConfirmedClock
  /** Deletes the stream if nothing was appended beyond `expectSeqNum`. */
  readonly remove: (
    commit: Commit,
    stream: Versioned<StreamDocument>,
    condition: { readonly expectSeqNum: number },
  ) => Promise<void>
}

/**
 * Deletes streams that are empty or have expired, and what creations left that were not completed: when a
 * deadline has passed, which is stored with the stream, and when a stream is used.
 */
export class Deadlines {
  readonly #context: DeadlinesContext
  #recorded: Promise<void> = Promise.resolve()

  constructor(context: DeadlinesContext) {
    this.#context = context
  }

  // Checks when a deadline has passed

  /** Checks the streams whose deadlines have passed. Part of the background work. */
  async checkDue(): Promise<void> {
    const { catalog, confirmedClock } = this.#context
    const now = await confirmedClock.now()
    for (const kind of DEADLINE_KINDS) {
      await catalog.forEach('deadlines', deadlinePrefix(kind), async (deadline) => {
        // The deadlines of a kind are ordered by time.
        if (deadlineTimeOf(deadline.key) > now) return 'stop'
        await this.#check(deadline, now)
        return undefined
      })
    }
  }

  /** Deletes the stream of a passed deadline if it is due, and otherwise moves or removes the deadline. */
  async #check(deadline: Versioned<DeadlineDocument>, now: number): Promise<void> {
    const { session, remove } = this.#context
    const { basin, stream, logId, kind } = deadline.value
    const done: CatalogChange = {
      kind: 'delete',
      collection: 'deadlines',
      key: deadline.key,
      expect: deadline.version,
    }
    const found = await this.#current({ basin, stream }, logId)
    if (found.head === undefined) {
      // The log of a creation that was not completed has no other trace.
      const isLeft = kind === 'creation' && found.document?.value.logId !== logId
      await session.commit(isLeft ? [done, { kind: 'delete-log', logId }] : [done])
      return
    }
    const { document, head } = found
    const decision = await this.#decide(kind, document.value, head, now)
    if (decision === 'delete') {
      // An append since then makes the deletion conflict; the deadline stays and is checked again.
      const commit = (removal: readonly CatalogChange[]) => session.commit([...removal, done])
      await remove(commit, document, { expectSeqNum: head.tail.seqNum })
    } else if (decision === null) {
      await session.commit([done])
    } else {
      const next = putDeadline(decision.checkAt, deadline.value)
      const isSame = deadlineKey(decision.checkAt, deadline.value) === deadline.key
      await session.commit(isSame ? [next] : [done, next])
    }
  }

  async #decide(
    kind: DeadlineDocument['kind'],
    { config, logId, expiry, createdAt, readAt }: StreamDocument,
    head: Head,
    now: number,
  ): Promise<LifetimeDecision> {
    if (kind === 'creation') return null
    const { appendedAt } = head
    if (kind === 'expiry') return decideExpiry(expiry, { createdAt, appendedAt, readAt }, now)
    const hasRecords = await this.#hasRecords(logId, head, now)
    const { minAgeSeconds } = config.deleteOnEmpty
    return decideDeleteOnEmpty({ minAgeSeconds, hasRecords, lastWriteAt: appendedAt }, now)
  }

  async #hasRecords(logId: string, { trimPoint, tail, extensions }: Head, now: number): Promise<boolean> {
    const endSeqNum = tail.seqNum
    let from = trimPoint
    while (from < endSeqNum) {
      const range = { from: { seqNum: from }, endSeqNum, bytesMax: 1 }
      const blocks = await this.#context.session.read(logId, range)
      const last = blocks.at(-1)
      if (last === undefined) return false
      if (blocks.some((block) => !isBlockExpired(blockExpiresAt(block, extensions), now))) return true
      from = last.endSeqNum
    }
    return false
  }

  /** The document of the stream with this name, and the head if it still has the log. */
  async #current(ref: StreamRef, logId: string) {
    const { session, catalog } = this.#context
    const document = await catalog.stream(ref)
    const head = document?.value.logId === logId ? await session.head(logId) : undefined
    return document === undefined || head === undefined
      ? ({ document, head: undefined } as const)
      : { document, head }
  }

  // Checks when a stream is used

  /**
   * Resolves to the document of a stream; to undefined if there is none, or it has expired: it is deleted
   * then. Rejects with `stream_deletion_pending` if only the name is in use.
   */
  async find(ref: StreamRef): Promise<Versioned<StreamDocument> | undefined> {
    const { session, catalog, confirmedClock } = this.#context
    const stream = await catalog.stream(ref)
    if (stream === undefined) return undefined
    const { name, deletedAt, expiry, logId, readAt } = stream.value
    if (deletedAt !== undefined) throw nameReserved(name)
    const head = expiry && (await session.head(logId))
    // One without a head was deleted meanwhile, which its user notices.
    if (head === undefined || !this.isOverdue({ document: stream.value, head, readAt })) return stream
    return (await this.#expire(ref, logId, await confirmedClock.now())) ? undefined : stream
  }

  /** Whether a stream that can expire has, by what is known here: another engine may have used it. */
  isOverdue({ document, head, readAt }: Pick<StreamLog, 'document' | 'head' | 'readAt'>): boolean {
    const { expiry, createdAt } = document
    const { appendedAt } = head
    return streamExpiresAt(expiry!, { createdAt, appendedAt, readAt }) <= this.#context.clock.now()
  }

  /** Deletes a stream that has expired. Resolves to whether it did, or another engine has. */
  #expire(ref: StreamRef, logId: string, now: number): Promise<boolean> {
    const { session, remove } = this.#context
    return unlessConflicting(async () => {
      const { document, head } = await this.#current(ref, logId)
      if (head === undefined) return true
      if ((await this.#decide('expiry', document.value, head, now)) !== 'delete') return false
      const commit = (removal: readonly CatalogChange[]) => session.commit(removal)
      await remove(commit, document, { expectSeqNum: head.tail.seqNum })
      return true
    })
  }

  /** Records a read of a stream that expires when it is idle, if it is time to. */
  noteRead(log: StreamLog): void {
    const { document, head, readAt } = log
    const { basin, name, logId, expiry, createdAt } = document
    if (expiry === undefined) return
    const { clock, onBackgroundError } = this.#context
    const now = clock.now()
    if (!isReadRecorded(expiry, { createdAt, appendedAt: head.appendedAt, readAt }, now)) return
    log.noteReadAt(now)
    const recording = this.#recordRead({ basin, stream: name }, logId, now).catch((error) => {
      // The next read is recorded instead.
      log.readAt = readAt
      onBackgroundError(error)
    })
    this.#recorded = this.#recorded.then(() => recording)
  }

  /** Stores the time of a read, unless the name belongs to another stream by now. */
  async #recordRead(ref: StreamRef, logId: string, readAt: number): Promise<void> {
    const { catalog } = this.#context
    await catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
      const stream = await catalog.stream(ref)
      if (stream?.value.logId !== logId || stream.value.deletedAt !== undefined) return
      await commit([putStream({ ...stream.value, readAt }, stream.version)])
    })
  }

  /** Resolves when the reads so far are recorded. */
  get recorded(): Promise<void> {
    return this.#recorded
  }
}
