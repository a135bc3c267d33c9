import { type AppendBatch, appendBatch, type RecordInput } from '../../model/append-input.ts'
import type { RedactedKey } from '../../model/encryption-key.ts'
import { HeadwaterError, invalid } from '../../model/errors.ts'
import type { AppendAck } from '../../model/info.ts'
import type { StreamRef } from '../../model/names.ts'
import type { SequencedRecord } from '../../model/record.ts'
import type { CatalogChange, LogStart, StorageSession } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { emptyHead } from '../../storage/heads.ts'
import type { StreamLog } from '../log/stream-log.ts'
import type { StreamTable } from '../streams/table.ts'
import type { StreamTarget } from '../streams/target.ts'
import { creationDeadline } from './deadlines.ts'
import type { ReadService } from './read-service.ts'

export interface StreamBuilderContext {
  readonly session: StorageSession
  readonly table: StreamTable
  readonly reads: ReadService
}

/** The initial content of a new stream. */
export interface InitialContent {
  /** The records below `seqNum` of another stream, or all. */
  readonly fork: { readonly target: StreamTarget; readonly seqNum: number | undefined } | undefined
  readonly records: AppendBatch | undefined
  readonly key: RedactedKey | undefined
}

/** A log that is complete, and no stream refers to yet. */
export interface BuiltLog {
  /** The id of the log that was copied. */
  readonly sourceId: string | undefined
  /** The changes that publishing it adds to the commit. */
  readonly changes: readonly CatalogChange[]
}

/**
 * Writes the first records of a new stream to its log before the stream appears, so that it appears with all
 * of them or not at all. A deadline removes the log if this process stops in between.
 */
export class StreamBuilder {
  readonly #context: StreamBuilderContext

  constructor(context: StreamBuilderContext) {
    this.#context = context
  }

  /** Resolves to the log of `document`. Rejects with `invalid` if the fork begins beyond the tail. */
  async build(document: StreamDocument, content: InitialContent): Promise<BuiltLog> {
    const { logId } = document
    const deadline = creationDeadline(document)
    try {
      const sourceId = await this.#write(document, content, deadline.begin)
      // Conflicts if the deadline has removed the log.
      return { sourceId, changes: [deadline.end, { kind: 'set-epoch', logId, epoch: document.epoch }] }
    } catch (error) {
      await this.discard(document).catch(() => {})
      throw error
    }
  }

  /** Deletes a log that is not published after all. Its deadline finds nothing. */
  discard({ logId }: StreamDocument): Promise<void> {
    return this.#context.session.commit([{ kind: 'delete-log', logId }])
  }

  async #write(
    document: StreamDocument,
    { fork, records, key }: InitialContent,
    deadline: CatalogChange,
  ): Promise<string | undefined> {
    const { session } = this.#context
    const { logId, epoch, createdAt } = document
    let log: StreamLog | undefined
    const begin = async (start: LogStart | undefined): Promise<StreamLog> => {
      await session.commit([
        { kind: 'create-log', logId, epoch, createdAt, ...(start && { start }) },
        deadline,
      ])
      return this.#context.table.detached(document, emptyHead(epoch, createdAt, start))
    }
    let sourceId: string | undefined
    if (fork !== undefined) {
      const source = await this.#context.table.lease(fork.target, 'read')
      sourceId = source.log.document.logId
      try {
        log = await this.#copy(document, fork, key, begin)
      } finally {
        source.release()
      }
    }
    log ??= await begin(undefined)
    if (records !== undefined) {
      const last = await this.#context.table.detached(document, log.head)
      await append(last, records, key)
    }
    return sourceId
  }

  async #copy(
    document: StreamDocument,
    { target, seqNum }: NonNullable<InitialContent['fork']>,
    key: RedactedKey | undefined,
    begin: (start: LogStart) => Promise<StreamLog>,
  ): Promise<StreamLog> {
    const { reads, table } = this.#context
    const { tail, trimPoint } = await reads.describe(target)
    const wanted = seqNum ?? tail.seqNum
    if (wanted > tail.seqNum) {
      throw invalid(`the fork begins at ${wanted}, beyond the tail ${tail.seqNum} of its source`, 'seqNum')
    }
    // A fork begins open: it does not copy the command that closed its source.
    const end = tail.closed && wanted === tail.seqNum ? Math.max(wanted - 1, trimPoint) : wanted
    if (end < trimPoint) throw forkTrimmed(target.ref, trimPoint)
    // Keeps timestamps as they are.
    const asIs = { ...document.config, timestamping: { mode: 'client-prefer', uncapped: true } } as const
    let log: StreamLog | undefined
    let next = trimPoint
    if (end > trimPoint) {
      const cursor = await reads.open(target, { seqNum: trimPoint }, { allowsEmpty: 'always' })
      try {
        while (next < end) {
          const batch = cursor && (await cursor.nextStored())
          if (batch === undefined) break
          const copied = batch.records.filter((record) => record.seqNum < end)
          const [first] = copied
          if (first === undefined) break
          if (log === undefined) {
            const created = await begin({
              tail: { seqNum: first.seqNum, timestamp: first.timestamp },
              fencingToken: '',
            })
            log = await table.detached({ ...document, config: asIs }, created.head)
            next = first.seqNum
          }
          // Records in the middle of a stream may have expired before earlier ones, and a log has no gaps.
          for (const { seqNum } of copied) {
            if (seqNum !== next) throw forkTrimmed(target.ref, seqNum)
            next++
          }
          await append(log, appendBatch(copied.map(inputOf)), key)
        }
      } finally {
        cursor?.close()
      }
    }
    // The last records were removed while the first ones were copied.
    if (log !== undefined && next < end) throw forkTrimmed(target.ref, end)
    return log ?? begin({ tail: { seqNum: end, timestamp: 0 }, fencingToken: '' })
  }
}

function inputOf({ body, headers, timestamp }: SequencedRecord): RecordInput {
  return { body, headers, timestamp }
}

function append(log: StreamLog, batch: AppendBatch, key: RedactedKey | undefined): Promise<AppendAck> {
  return new Promise((acked, failed) => log.append(batch, key, { acked, failed }))
}

function forkTrimmed({ stream, shownAs = stream }: StreamRef, seqNum: number): HeadwaterError {
  const message = `stream \`${shownAs}\` has lost records below ${seqNum} that the fork needs`
  return new HeadwaterError('history_trimmed', message, { seqNum })
}
