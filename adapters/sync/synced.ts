import type { Stream } from '../../src/api/stream.ts'
import { assertValid } from '../../src/model/errors.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { type MembersOf, oneOf } from '../../src/model/validation.ts'
import { OUTBOX_PREFIX, outboxNameProblem } from '../../src/sync/basin.ts'
import { assertStart, type MirrorStart } from '../../src/sync/mirror.ts'
import { type MirrorOptions, mirror } from './mirror.ts'
import { assertOutboxOptions, OUTBOX_OPTIONS, Outbox, type OutboxOptions } from './outbox.ts'
import { assertEnds } from './synced-ends.ts'
import { type SyncedParts, SyncedStream } from './synced-stream.ts'

/** Options of `syncedStream`. */
export interface SyncedStreamOptions<Format extends RecordFormat = RecordFormat> extends OutboxOptions {
  /** The type of bodies and headers: `'string'` by default, or `'bytes'`. */
  readonly as?: Format | undefined
  /** The start of a copy that has no records yet: see `mirror`. By default, the first record. */
  readonly from?: MirrorStart | undefined
}

const SYNCED_STREAM_OPTIONS: MembersOf<SyncedStreamOptions> = {
  ...OUTBOX_OPTIONS,
  as: oneOf(['string', 'bytes']),
  from: assertStart,
}

/**
 * Keeps a stream of this device in sync with a stream of a server, in both directions. `remote` is a stream
 * of a client, `local` one of an engine, to which nothing else appends. Tabs that sync the same stream share
 * one connection. Connects in the background: see `state`.
 *
 * Throws `invalid` for options that are not valid, and for a local name of more than 504 bytes.
 *
 * ```ts
 * const server = await connect({ url: 'https://streams.example' })
 * const hw = await open({ storage: indexedDb('my-app') })
 * const chat = syncedStream(server.basin('my-app').stream('chat'), hw.basin('my-app').stream('chat'))
 * await chat.append('written offline or online')
 * ```
 */
export function syncedStream<Format extends RecordFormat = 'string'>(
  remote: Stream,
  local: Stream,
  options: SyncedStreamOptions<Format> = {},
): SyncedStream<Format> {
  assertOutboxOptions(options, SYNCED_STREAM_OPTIONS)
  assertEnds(remote, local)
  const { as = 'string', ...others } = options
  return new SyncedStream<Format>(syncedParts(remote, local, others), as)
}

/** @internal Starts a mirror, and an outbox that sends while the mirror is live. */
export function syncedParts(
  remote: Stream,
  local: Stream,
  options: Omit<SyncedStreamOptions, 'as'> & Pick<MirrorOptions, 'create' | 'mayConnect'>,
): SyncedParts {
  const { from, create, mayConnect, signal, random, coordinator, wakeUps } = options
  assertValid(outboxNameProblem(local.name), 'local')
  const log = local.sibling(OUTBOX_PREFIX + local.name)
  const outbox = new Outbox(log, remote, options, local)
  const copying = { from, create, mayConnect, signal, random, coordinator, wakeUps, outbox }
  const copy = mirror(remote, local, copying)
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= Promise.all([outbox.close(), copy.close()]).then(() => {})
    return closed
  }
  return { mirror: copy, outbox, close }
}
