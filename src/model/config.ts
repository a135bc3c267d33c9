import { invalid } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'
import {
  assertInteger,
  assertMembers,
  type Check,
  type Clearable,
  complete,
  type MembersOf,
  oneOf,
  orNull,
  type Settable,
} from './validation.ts'

/** The storage class of a stream. It has no effect, but is stored, listed and metered. */
export type StorageClass = 'standard' | 'express'

/**
 * Which timestamps records get: `client-prefer` uses the writer's if it gave one, `client-require` rejects
 * records without one, and `arrival` always uses the time of the append.
 */
export type TimestampingMode = 'client-prefer' | 'client-require' | 'arrival'

/** A cipher that encrypts records at rest. */
export type Cipher = 'aegis-256' | 'aes-256-gcm'

/** How long records are kept: seconds, at least 1, or forever. */
export type RetentionPolicy = { readonly ageSeconds: number } | 'infinite'

/** The complete configuration of a stream (docs/protocol.md "Configuration"). */
export interface StreamConfig {
  /** The storage class, `express` by default: a label of the hosted service, which is stored and metered. */
  readonly storageClass?: StorageClass | undefined
  /** How long a record is kept after its append. A longer policy extends the records that are stored. */
  readonly retentionPolicy: RetentionPolicy
  /** How records get their timestamps. */
  readonly timestamping: {
    readonly mode: TimestampingMode
    /** Whether a writer's timestamp may lie ahead. Otherwise it is capped at the time of the append. */
    readonly uncapped: boolean
  }
  /** The time after which a stream without records is deleted. */
  readonly deleteOnEmpty: {
    /** Seconds since the last write after which an empty stream is deleted; 0 is never. */
    readonly minAgeSeconds: number
  }
}

/**
 * The configuration of a new stream. Absent members come from the basin's default, then from the system's:
 * the retention is infinite in process and 7 days over HTTP, timestamps are `client-prefer` and capped, and
 * an empty stream is never deleted. With `ensureStream`, a longer retention extends the records that are
 * stored.
 */
export interface StreamConfigInput extends Settable<Omit<StreamConfig, Group>> {
  readonly timestamping?: Settable<StreamConfig['timestamping']> | undefined
  readonly deleteOnEmpty?: Settable<StreamConfig['deleteOnEmpty']> | undefined
}

type Group = 'timestamping' | 'deleteOnEmpty'

/** The complete configuration of a basin. */
export interface BasinConfig {
  /**
   * The defaults of new streams: members that were set explicitly, the storage class, and the retention of a
   * basin that was created in process.
   */
  readonly defaultStreamConfig: StreamConfigInput
  /** The cipher of new streams; null stores them in plain form. Existing streams keep theirs. */
  readonly streamCipher: Cipher | null
  /**
   * Whether an append creates a missing stream: over HTTP, for holders of access tokens, and with
   * `autoCreate: false`. Otherwise every append does.
   */
  readonly createStreamOnAppend: boolean
  /** Whether reads and tail checks create a missing stream. */
  readonly createStreamOnRead: boolean
}

/**
 * The configuration of a new basin. By default, nothing is encrypted and no flag is set. In process, the
 * retention of new streams is infinite unless it is given.
 */
export type BasinConfigInput = Settable<BasinConfig>

/**
 * A change of a stream (docs/protocol.md "Reconfiguring"). Absent members stay as they are, `null` returns
 * them to the basin's default, a value sets them. A longer retention extends the records that are stored; a
 * shorter one applies to later records only.
 */
export interface StreamReconfiguration extends Clearable<Omit<StreamConfig, Group>> {
  readonly timestamping?: Clearable<StreamConfig['timestamping']> | null | undefined
  readonly deleteOnEmpty?: Clearable<StreamConfig['deleteOnEmpty']> | null | undefined
}

/**
 * A change of a basin. Absent members stay as they are, `null` clears the cipher and the defaults and keeps
 * the others, a value sets them. Existing streams keep their configuration and their cipher.
 */
export interface BasinReconfiguration extends Clearable<Omit<BasinConfig, 'defaultStreamConfig'>> {
  readonly defaultStreamConfig?: StreamReconfiguration | null | undefined
}

const assertAge: Check = (value, field) => {
  if (value === 0) throw invalid(`\`${field}\` must be greater than 0 seconds`, field)
  if (Number.isSafeInteger(value) && (value as number) >= 1) return
  throw invalid(`\`${field}\` must be an integer from 1 to ${INTEGER_MAX}`, field)
}

const assertFiniteRetention = complete({ ageSeconds: assertAge })

export const assertRetention: Check = (value, field) => {
  if (value === 'infinite') return
  if (typeof value !== 'object') {
    throw invalid(`\`${field}\` must be 'infinite' or an object with \`ageSeconds\``, field)
  }
  assertFiniteRetention(value, field)
}

const STREAM_CONFIG: MembersOf<StreamReconfiguration> = {
  storageClass: orNull(oneOf(['standard', 'express'])),
  retentionPolicy: orNull(assertRetention),
  timestamping: orNull({
    mode: orNull(oneOf(['client-prefer', 'client-require', 'arrival'])),
    uncapped: orNull('boolean'),
  }),
  deleteOnEmpty: orNull({ minAgeSeconds: orNull(assertInteger) }),
}

/** Throws `invalid` for a configuration of a stream, or a change of one, with an invalid member. */
export function assertStreamConfig(config: StreamConfigInput | StreamReconfiguration): void {
  assertMembers(config, STREAM_CONFIG, 'config')
}

export const isCipher: Check = orNull(oneOf(['aegis-256', 'aes-256-gcm']))

const BASIN_CONFIG: MembersOf<BasinReconfiguration> = {
  // Its members are named without their path, like those of a stream's configuration.
  defaultStreamConfig: orNull((value) => assertStreamConfig(value as StreamReconfiguration)),
  streamCipher: isCipher,
  createStreamOnAppend: orNull('boolean'),
  createStreamOnRead: orNull('boolean'),
}

/** Throws `invalid` for a configuration of a basin, or a change of one, with an invalid member. */
export function assertBasinConfig(config: BasinConfigInput | BasinReconfiguration): void {
  assertMembers(config, BASIN_CONFIG, 'config')
}
