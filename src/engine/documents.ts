import type { BasinConfig, Cipher, StreamConfig } from '../model/config.ts'
import type { BasinInfo, StreamInfo } from '../model/info.ts'
import { basinNameProblem, refuse } from '../model/names.ts'
import type { JsonValue } from '../storage/contract.ts'

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

/** Collection `deadlines`, key: {@link deadlineKey}: when to look whether a stream with delete-on-empty goes. */
export interface DeadlineDocument {
  readonly basin: string
  readonly stream: string
  readonly logId: string
}

/** Streams of a basin lie together, in the order of their names. No name of a basin holds U+0000. */
export function streamKey(basin: string, stream: string): string {
  // Else it would be the key of another stream: what is looked up here was not always checked before.
  if (basin.includes('\0')) refuse(basinNameProblem(basin), 'basin')
  return `${basin}\0${stream}`
}

/** Deadlines lie in the order of their time, which has 16 digits: enough for 2^53. */
export function deadlineKey(at: number, logId: string): string {
  return `delete-on-empty\0${deadlineTime(at)}\0${logId}`
}

export const DEADLINE_PREFIX = 'delete-on-empty\0'

/** The time of a deadline's key. */
export function deadlineTimeOf(key: string): number {
  return Number(key.slice(DEADLINE_PREFIX.length, DEADLINE_PREFIX.length + 16))
}

function deadlineTime(at: number): string {
  return String(Math.ceil(at)).padStart(16, '0')
}

export function basinInfo(document: BasinDocument): BasinInfo {
  return {
    name: document.name,
    scope: document.scope,
    location: document.location,
    state: document.deletedAt === null ? 'active' : 'deleting',
    createdAt: new Date(document.createdAt),
    deletedAt: document.deletedAt === null ? null : new Date(document.deletedAt),
  }
}

export function streamInfo(document: StreamDocument): StreamInfo {
  return {
    name: document.name,
    createdAt: new Date(document.createdAt),
    deletedAt: null,
    cipher: document.cipher,
  }
}

/** Documents are plain JSON by construction; optional members that are undefined are dropped by storages. */
export function asJson(document: BasinDocument | StreamDocument | DeadlineDocument): JsonValue {
  return document as unknown as JsonValue
}
