import type { ConfirmedTime } from '../core/clocks.ts'
import type { Expiry } from '../core/lifetime.ts'
import type { Series } from '../core/usage/resolutions.ts'
import type { AccessScope } from '../model/access.ts'
import type { BasinConfig, Cipher, StreamConfig } from '../model/config.ts'
import { invalid } from '../model/errors.ts'
import type { StreamMetadata } from '../model/info.ts'
import type { CatalogChange, Collection, JsonValue, ListRange, StorageSession } from './contract.ts'

/**
 * The documents that the engine keeps in the catalog of a storage. Persisted: members may be added, but never
 * renamed or given another meaning.
 */

/** Collection `basins`, key: the name. */
export interface BasinDocument {
  readonly name: string
  readonly createdAt: number
  /** The time at which deletion was requested. The document is removed after the basin's last stream. */
  readonly deletedAt: number | null
  readonly config: BasinConfig
  /** See `core/provision.ts`. */
  readonly creationKey: string | null
}

/** Collection `streams`, key: {@link streamKey}. */
export interface StreamDocument {
  readonly basin: string
  readonly name: string
  /** Id of the log. A stream that is deleted and created again gets a new one. */
  readonly logId: string
  readonly createdAt: number
  readonly config: StreamConfig
  readonly cipher: Cipher | null
  /** Version of the configuration, equal to the epoch of the log's head. */
  readonly epoch: number
  readonly creationKey: string | null
  /** Absent if there is none. */
  readonly metadata?: StreamMetadata | undefined
  /** Absent: never. */
  readonly expiry?: Expiry | undefined
  /** The time of a read, in milliseconds; only of streams that expire when they are idle. */
  readonly readAt?: number | undefined
  /** The stream in the same basin of which this one began as a copy, if that stream counts it. */
  readonly forkOf?: { readonly stream: string; readonly logId: string } | undefined
  /** How many streams began as copies of this one and exist. Absent: 0. */
  readonly forks?: number | undefined
  /** The time at which a stream with forks was deleted, in milliseconds: only its name is in use. */
  readonly deletedAt?: number | undefined
}

/** Sorts the streams of a basin together, by name. Basin names do not contain U+0000. */
export function streamKey(basin: string, stream: string): string {
  // Names are not always validated before a lookup, and U+0000 would make this the key of another stream.
  if (basin.includes('\0')) throw invalid('basin name must not contain U+0000', 'basin')
  return `${basin}\0${stream}`
}

/** Collection `deadlines`, key: {@link deadlineKey}: when to check whether a stream is due for deletion. */
export interface DeadlineDocument {
  readonly basin: string
  readonly stream: string
  readonly logId: string
  readonly kind: DeadlineKind
}

/** Why a stream may be due: it is empty, it expires, or its creation was not completed and left its log. */
export const DEADLINE_KINDS = ['empty', 'expiry', 'creation'] as const
export type DeadlineKind = (typeof DEADLINE_KINDS)[number]

/** Sorts the deadlines of a kind by time. 16 digits are enough for 2^53. */
export function deadlineKey(at: number, { logId, kind }: Pick<DeadlineDocument, 'logId' | 'kind'>): string {
  return `${deadlinePrefix(kind)}${String(Math.ceil(at)).padStart(16, '0')}\0${logId}`
}

export function putDeadline(at: number, deadline: DeadlineDocument): CatalogChange {
  return putDocument('deadlines', deadlineKey(at, deadline), deadline)
}

export function deadlinePrefix(kind: DeadlineKind): string {
  return `${kind}\0`
}

/** The time in the key of a deadline, in milliseconds. */
export function deadlineTimeOf(key: string): number {
  return Number(key.split('\0')[1])
}

/** Collection `tokens`, key: the id. */
export interface TokenDocument {
  readonly id: string
  /** SHA-256 of the token in hexadecimal digits. The token itself is not stored. */
  readonly digest: string
  /** Milliseconds; null for never. */
  readonly expiresAt: number | null
  /** How it was written over HTTP. */
  readonly expiresAtText?: string | undefined
  readonly autoPrefixStreams: boolean
  readonly scope: AccessScope
}

/** Collection `usage`, key: `usageKey` of `usage/usage-store.ts`. */
export interface UsageDocument {
  readonly series: Series
}

/** Collection `settings`, by key. */
interface Settings {
  readonly 'confirmed-time': ConfirmedTime
  /** The digest of the token, like that of a {@link TokenDocument}. */
  readonly 'root-token': { readonly digest: string }
  /** The last hour, since the Unix epoch, in which the usage of all basins was sampled. */
  readonly 'usage-sampled': { readonly hour: number }
}

/** The documents of a collection, but for settings. */
export interface Documents {
  readonly basins: BasinDocument
  readonly streams: StreamDocument
  readonly deadlines: DeadlineDocument
  readonly tokens: TokenDocument
  readonly usage: UsageDocument
}

type KeyIn<From extends Collection> = From extends 'settings' ? keyof Settings : string

type DocumentAt<From extends Collection, Key> = From extends keyof Documents
  ? Documents[From]
  : Key extends keyof Settings
    ? Settings[Key]
    : never

/** A document and the version to expect when replacing it. */
export interface Versioned<Value> {
  readonly key: string
  readonly value: Value
  readonly version: number
}

/** Returns a document, typed by its collection: an engine finds what an engine wrote. */
export async function getDocument<From extends Collection, Key extends KeyIn<From>>(
  session: Pick<StorageSession, 'get'>,
  collection: From,
  key: Key,
): Promise<Versioned<DocumentAt<From, Key>> | undefined> {
  const document: unknown = await session.get(collection, key)
  return document as Versioned<DocumentAt<From, Key>> | undefined
}

/** Returns a page of documents, typed by their collection. */
export async function listDocuments<From extends keyof Documents>(
  session: Pick<StorageSession, 'list'>,
  collection: From,
  range: ListRange,
): Promise<readonly Versioned<Documents[From]>[]> {
  const documents: unknown = await session.list(collection, range)
  return documents as readonly Versioned<Documents[From]>[]
}

/** The documents of a collection whose keys have a prefix, in pages that are not empty. */
export async function* documentPages<From extends keyof Documents>(
  session: Pick<StorageSession, 'list'>,
  collection: From,
  prefix: string,
  limit: number,
): AsyncGenerator<readonly Versioned<Documents[From]>[], void> {
  let after = ''
  for (;;) {
    const page = await listDocuments(session, collection, { prefix, after, limit })
    if (page.length > 0) yield page
    if (page.length < limit) return
    after = page.at(-1)!.key
  }
}

/** Creates or replaces a document. `expect` is that of {@link CatalogChange}. */
export function putDocument<To extends Collection, Key extends KeyIn<To>>(
  collection: To,
  key: Key,
  document: DocumentAt<To, Key>,
  expect?: number | null,
): CatalogChange {
  // Documents are plain JSON by construction. Storages drop optional members that are undefined.
  const value = document as JsonValue
  return { kind: 'put', collection, key, value, expect }
}

export function putStream(document: StreamDocument, expect: number | null): CatalogChange {
  return putDocument('streams', streamKey(document.basin, document.name), document, expect)
}
