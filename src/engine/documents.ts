import type { BasinConfig, Cipher, StreamConfig } from '../model/config.ts'
import { invalid } from '../model/errors.ts'
import type { JsonValue } from '../storage/contract.ts'
import type { DeadlineDocument } from './deadlines.ts'

/**
 * The documents that the engine keeps in a storage's catalog. Persisted: members may be added, never renamed or given another meaning.
 */

/** Collection `basins`, key: the name. */
export interface BasinDocument {
  readonly name: string
  readonly scope: string
  readonly location: string | null
  /** Milliseconds. */
  readonly createdAt: number
  /** Set once deletion was asked for; the document goes when the basin's last stream has gone. */
  readonly deletedAt: number | null
  readonly config: BasinConfig
  /** See `core/provision.ts`. */
  readonly creationKey: string | null
}

/** Collection `streams`, key: {@link streamKey}. */
export interface StreamDocument {
  readonly basin: string
  readonly name: string
  /** Names the log of this incarnation: a stream that is deleted and made anew gets another. */
  readonly logId: string
  readonly createdAt: number
  readonly config: StreamConfig
  readonly cipher: Cipher | null
  /** Counts configurations; equal to the epoch of the log's head. */
  readonly epoch: number
  readonly creationKey: string | null
}

/** Streams of a basin lie together, in the order of their names. No name of a basin holds U+0000. */
export function streamKey(basin: string, stream: string): string {
  // Else it would be the key of another stream: what is looked up here was not always checked before.
  if (basin.includes('\0')) throw invalid('basin name must not contain U+0000', 'basin')
  return `${basin}\0${stream}`
}

/** Documents are plain JSON by construction; optional members that are undefined are dropped by storages. */
export function asJson(document: BasinDocument | StreamDocument | DeadlineDocument): JsonValue {
  return document as unknown as JsonValue
}
