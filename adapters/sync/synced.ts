import type { Stream } from '../../src/api/stream.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { assertMembers, assertSignal, type MembersOf, oneOf, unchecked } from '../../src/model/validation.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { AfterRefusal } from '../../src/sync/outbox-plan.ts'
import type { Coordinator } from './coordinator.ts'
import { type MirrorStart, mirror } from './mirror.ts'
import { Outbox } from './outbox.ts'
import type { WakeUps } from './page-events.ts'
import { SyncedStream } from './synced-stream.ts'

/** Options of `syncedStream`. */
export interface SyncedStreamOptions<Format extends RecordFormat = RecordFormat> {
  /** The type of bodies and headers: `'string'` by default, or `'bytes'`. */
  readonly as?: Format | undefined
  /** Where a copy begins that has no records yet: see `mirror`. By default, with the first record. */
  readonly from?: MirrorStart | undefined
  /** How many records may wait for the server. 100,000 by default. */
  readonly recordsMax?: number | undefined
  /** How many metered bytes of records may wait for the server. 64 MiB by default. */
  readonly bytesMax?: number | undefined
  /** What happens to the records behind one that the server refuses. They wait by default. */
  readonly afterRefusal?: AfterRefusal | undefined
  /** Closes the synced stream when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** Returns random numbers in [0, 1), for pauses between attempts. `Math.random` by default. */
  readonly random?: (() => number) | undefined
  /** @internal */
  readonly coordinator?: Coordinator | undefined
  /** @internal */
  readonly wakeUps?: WakeUps | undefined
}

const SYNCED_STREAM_OPTIONS: MembersOf<SyncedStreamOptions> = {
  as: oneOf(['string', 'bytes']),
  from: unchecked,
  recordsMax: 'number',
  bytesMax: 'number',
  afterRefusal: oneOf(['stop', 'continue']),
  signal: assertSignal,
  random: 'function',
  coordinator: 'function',
  wakeUps: 'function',
}

/**
 * Keeps a stream of this device in sync with a stream of a server, in both directions. `remote` is a stream of
 * a client, `local` one of an engine, to which nothing else appends.
 */
export function syncedStream<Format extends RecordFormat = 'string'>(
  remote: Stream,
  local: Stream,
  options: SyncedStreamOptions<Format> = {},
): SyncedStream<Format> {
  assertMembers(options, SYNCED_STREAM_OPTIONS, 'options')
  const { as = 'string', from, signal, random, coordinator, wakeUps, ...limits } = options
  const outbox = new Outbox(local.sibling(`.outbox/${local.name}`), remote, {
    ...limits,
    random,
    wakeUps,
    examined: local,
  })
  const copy = mirror(remote, local, {
    from,
    random,
    coordinator,
    wakeUps,
    whileLeading: (leading) => outbox.run(leading),
  })
  let closed: Promise<void> | undefined
  const close = () => {
    ignoreSignal()
    closed ??= Promise.all([outbox.close(), copy.close()]).then(() => {})
    return closed
  }
  let ignoreSignal = () => {}
  const synced = new SyncedStream<Format>({ mirror: copy, outbox, close }, as)
  if (signal !== undefined) ignoreSignal = onAbort(signal, () => void close())
  return synced
}
