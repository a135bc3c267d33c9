import {
  decideDeleteOnEmpty,
  decideExpiry,
  firstCheckAt,
  isReadRecorded,
  type LifetimeDecision,
  streamExpiresAt,
} from '../../core/lifetime.ts'
import { extendedExpiry, isExpired } from '../../core/retention.ts'
import type { StreamRef } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CatalogChange, Head, StorageSession } from '../../storage/contract.ts'
import {
  type DeadlineDocument,
  deadlineKey,
  getDocument,
  putDeadline,
  putStream,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { conflictError } from '../log/errors.ts'
import type { StreamLog } from '../log/stream-log.ts'
import { nameReserved } from '../streams/errors.ts'
import { type Catalog, CONFLICTS_MAX, type Commit } from './catalog.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'

// Scheduling

/** Schedules the first check of a stream with delete-on-empty. */
export function emptyDeadline(document: StreamDocument, now: number): CatalogChange[] {
  const { minAgeSeconds } = document.config.deleteOnEmpty
  if (minAgeSeconds === 0) return []
  const { basin, name, logId } = document
  return [putDeadline(firstCheckAt(minAgeSeconds, now), { basin, stream: name, logId, kind: 'empty' })]
}

/** Schedules the first check whether a stream has expired. */
export function expiryDeadline({ basin, name, logId, createdAt, expiry }: StreamDocument): CatalogChange[] {
  if (expiry === undefined) return []
  const at = streamExpiresAt(expiry, { createdAt, appendedAt: createdAt })
  return [putDeadline(at, { basin, stream: name, logId, kind: 'expiry' })]
}

/** How long a creation may take until what it left is removed, in milliseconds. */
const CREATION_MS_MAX = 3_600_000

/** What begins and what ends the creation of a log that no stream refers to yet. */
export function creationDeadline({ basin, name, logId, createdAt }: StreamDocument): {
  readonly begin: CatalogChange
  readonly end: CatalogChange
} {
  const deadline: DeadlineDocument = { basin, stream: name, logId, kind: 'creation' }
  const at = createdAt + CREATION_MS_MAX
  return {
    begin: putDeadline(at, deadline),
    end: { kind: 'delete', collection: 'deadlines', key: deadlineKey(at, deadline) },
  }
}

interface StreamRemoval {
  /** Deletes the stream if nothing was appended beyond `expectSeqNum`. */
  remove(
    commit: Commit,
    stream: Versioned<StreamDocument>,
    condition: { readonly expectSeqNum: number },
  ): Promise<void>
}

export interface DeadlinesContext {
  readonly session: StorageSession
  readonly catalog: Catalog
  readonly changes: StreamRemoval
  readonly clock: Clock
  readonly confirmedClock: ConfirmedClock
  readonly onBackgroundError: (error: unknown) => void
}

/** Deletes streams that are empty or have expired, and what creations left that were not completed. */
export class Deadlines {
  readonly #context: DeadlinesContext
  #recorded: Promise<void> = Promise.resolve()

  constructor(context: DeadlinesContext) {
    this.#context = context
  }

  // Checks when a deadline has passed

  /**
   * Deletes the stream of a deadline that has passed if it is empty or expired, and otherwise moves the
   * deadline or removes it.
   */
  async check(deadline: Versioned<DeadlineDocument>, now: number): Promise<void> {
    const { session, changes } = this.#context
    const { basin, stream, logId, kind } = deadline.value
    const done: CatalogChange = {
      kind: 'delete',
      collection: 'deadlines',
      key: deadline.key,
      expect: deadline.version,
    }
    const found = await this.#find({ basin, stream }, logId)
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
      await changes.remove(commit, document, { expectSeqNum: head.tail.seqNum })
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
      if (blocks.some((block) => !isExpired(extendedExpiry(block, extensions), now))) return true
      from = last.endSeqNum
    }
    return false
  }

  /** The document of the stream with this name, and the head if it still has the log. */
  async #find({ basin, stream }: StreamRef, logId: string) {
    const { session } = this.#context
    const document = await getDocument(session, 'streams', streamKey(basin, stream))
    const head = document?.value.logId === logId ? await session.head(logId) : undefined
    return document === undefined || head === undefined
      ? ({ document, head: undefined } as const)
      : { document, head }
  }

  // Checks when a stream is used

  /**
   * Resolves to the document of a stream that was found by its name, or to undefined if the stream has
   * expired: it is deleted then. Rejects with `stream_deletion_pending` if only the name is in use.
   */
  async live(document: StreamDocument): Promise<StreamDocument | undefined> {
    const { session, confirmedClock } = this.#context
    const { basin, name, deletedAt, expiry, logId, readAt } = document
    if (deletedAt !== undefined) throw nameReserved(name)
    const head = expiry && (await session.head(logId))
    // One without a head was deleted meanwhile, which its user notices.
    if (head === undefined || !this.isOverdue({ document, head, readAt })) return document
    const now = await confirmedClock.now()
    return (await this.#expire({ basin, stream: name }, logId, now)) ? undefined : document
  }

  /**
   * Whether a stream that can expire has expired by what is known of it here, unless another engine has used
   * it.
   */
  isOverdue({ document, head, readAt }: Pick<StreamLog, 'document' | 'head' | 'readAt'>): boolean {
    const { expiry, createdAt } = document
    const { appendedAt } = head
    return streamExpiresAt(expiry!, { createdAt, appendedAt, readAt }) <= this.#context.clock.now()
  }

  /** Deletes a stream that has expired. Resolves to whether it did, or another engine has. */
  async #expire(ref: StreamRef, logId: string, now: number): Promise<boolean> {
    const { session, changes } = this.#context
    for (let attempts = 0; attempts < CONFLICTS_MAX; attempts++) {
      const { document, head } = await this.#find(ref, logId)
      if (head === undefined) return true
      if ((await this.#decide('expiry', document.value, head, now)) !== 'delete') return false
      try {
        const commit = (removal: readonly CatalogChange[]) => session.commit(removal)
        await changes.remove(commit, document, { expectSeqNum: head.tail.seqNum })
        return true
      } catch (error) {
        if (!StorageConflict.is(error)) throw error
      }
    }
    throw conflictError()
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
