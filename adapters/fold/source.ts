import type { JsonStream } from '../../src/api/json-stream.ts'
import { CursorIterator, type ReadEvent } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { invalid } from '../../src/model/errors.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import type { ChangeSource, StreamChange } from '../../src/sync/changes.ts'

/** A source of changes that a fold follows. */
export interface FoldSource<Confirmed = unknown, Pending = unknown> extends ChangeSource<Confirmed, Pending> {
  /** The stream whose records are the confirmed ones. Snapshots are stored beside it. */
  readonly stored?: Stream | undefined
}

type ItemsOf = (batch: ReadBatch) => MaybePromise<readonly unknown[]>

/** Returns the source of changes that a fold follows. Throws `invalid` for anything else. */
export function foldSourceOf(
  source: Stream | JsonStream<unknown, never> | ChangeSource<unknown, unknown>,
  create: boolean,
): FoldSource {
  const given = Object(source)
  if (typeof given.changes === 'function') return given
  if (typeof given.decodeBatch === 'function') {
    return sourceOf(given.stream, (batch) => given.decodeBatch(batch), create)
  }
  if (typeof given.openCursor === 'function') {
    return sourceOf(given, (batch) => batch.withoutCommands().as('string').records, create)
  }
  throw invalid('`source` must be a stream', 'source')
}

function sourceOf(stream: Stream, itemsOf: ItemsOf, create: boolean): FoldSource {
  return {
    stored: stream,
    changes: (from, { signal }) => changesOf(stream, itemsOf, create, from, signal),
  }
}

/** Iterates over the changes of a plain stream. Nothing is pending in it, and command records are left out. */
async function* changesOf(
  stream: Stream,
  itemsOf: ItemsOf,
  create: boolean,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<StreamChange<unknown, unknown>, void, undefined> {
  const query = { seqNum: from, waitMs: Number.POSITIVE_INFINITY }
  const options = { heartbeats: 'first', create, allowsEmpty: 'always' } as const
  const events = new CursorIterator(
    () => stream.openCursor(query, options),
    signal,
    (event: ReadEvent) => event,
  )
  let position = from
  let isCaughtUp = false
  try {
    for await (const event of events) {
      if (event.kind === 'batch') {
        const { batch } = event
        const start = batch.records[0]?.seqNum
        position = batch.lastSeqNum + 1
        isCaughtUp = batch.tail?.seqNum === position
        yield { start, confirmed: await itemsOf(batch), position, pending: [], isCaughtUp }
        continue
      }
      const { seqNum: tail } = event.tail
      // All records up to the tail were trimmed.
      const start = tail > position ? tail : undefined
      // Otherwise a heartbeat while nothing happens.
      if (isCaughtUp && start === undefined) continue
      position = tail
      isCaughtUp = true
      yield { start, confirmed: [], position, pending: [], isCaughtUp }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
