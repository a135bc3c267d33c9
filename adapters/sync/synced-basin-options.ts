import type { Basin } from '../../src/api/basin.ts'
import { utf8Length } from '../../src/model/bytes.ts'
import { invalid } from '../../src/model/errors.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { assertText, hasMethod, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { isInternalName, SYNCED_NAME_BYTES_MAX } from '../../src/sync/basin.ts'
import { assertStart } from '../../src/sync/mirror.ts'
import { assertOutboxOptions, OUTBOX_OPTIONS } from './outbox.ts'
import type { SyncedStreamOptions } from './synced.ts'

/**
 * Options of `syncedBasin`. The members that it shares with `syncedStream` apply to each stream.
 *
 * ```ts
 * const rooms = await syncedBasin({
 *   remote: server.basin('rooms'),
 *   local: basin,
 *   connectionsMax: 10,
 *   createStreams: false,
 * })
 * for (const { name, state } of rooms.streams) console.log(name, state.kind, rooms.state.kind)
 * const files = rooms.stream('files', { as: 'bytes' })
 * ```
 */
export interface SyncedBasinOptions extends Omit<SyncedStreamOptions, 'as'> {
  /** The basin of a client. */
  readonly remote: Basin
  /** The basin of an engine on this device. */
  readonly local: Basin
  /** The prefix of the names of streams to sync. By default `''`, which is all streams. */
  readonly prefix?: string | undefined
  /**
   * How many streams are connected at once, at least 1. 3 by default, so that 3 of the 6 connections of a
   * browser remain for appends, lists and the app. Higher values help with HTTP/2.
   */
  readonly connectionsMax?: number | undefined
  /**
   * How often the streams of the server are listed, and open streams without a connection are visited, in
   * milliseconds, at least 1,000. 30,000 by default.
   */
  readonly discoverMs?: number | undefined
  /** Whether streams that the app opens are created on the server. True by default. */
  readonly createStreams?: boolean | undefined
}

/** Options of `stream` of a synced basin. */
export interface BasinStreamOptions<Format extends RecordFormat = RecordFormat> {
  /** The type of bodies and headers: `'string'` by default, or `'bytes'`. */
  readonly as?: Format | undefined
  /**
   * Whether opening the stream does not count as a use of it, as for a list of all streams. An append still
   * does. False by default.
   */
  readonly isBackground?: boolean | undefined
}

const assertBasin = hasMethod('listStreams', 'a basin')
const SYNCED_BASIN_OPTIONS: MembersOf<SyncedBasinOptions> = {
  ...OUTBOX_OPTIONS,
  remote: assertBasin,
  local: assertBasin,
  prefix: assertText,
  connectionsMax: 'number',
  discoverMs: 'number',
  createStreams: 'boolean',
  from: assertStart,
}

export const BASIN_STREAM_OPTIONS: MembersOf<BasinStreamOptions> = {
  as: oneOf(['string', 'bytes']),
  isBackground: 'boolean',
}

/** Throws `invalid` for options that are not valid. */
export function assertSyncedBasinOptions(options: SyncedBasinOptions): void {
  assertOutboxOptions(options, SYNCED_BASIN_OPTIONS)
  assertBasin(options.remote, 'remote')
  assertBasin(options.local, 'local')
  const least = { connectionsMax: 1, discoverMs: 1_000 } as const
  for (const name of Object.keys(least) as (keyof typeof least)[]) {
    const value = options[name]
    if (value !== undefined && !(value >= least[name])) {
      throw invalid(`\`${name}\` must be at least ${least[name]}, not ${value}`, name)
    }
  }
  const { prefix = '' } = options
  if (isInternalName(prefix)) throw invalid('`prefix` is that of streams that sync uses itself', 'prefix')
  if (utf8Length(prefix) > SYNCED_NAME_BYTES_MAX) {
    throw invalid(`\`prefix\` must not exceed ${SYNCED_NAME_BYTES_MAX} bytes in length`, 'prefix')
  }
}
