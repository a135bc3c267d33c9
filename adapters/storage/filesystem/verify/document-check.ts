import { utf8Length } from '../../../../src/model/bytes.ts'
import { basinNameProblem, streamNameProblem } from '../../../../src/model/names.ts'
import type { Collection } from '../../../../src/storage/contract.ts'
import {
  type BasinDocument,
  type DeadlineDocument,
  deadlineKey,
  deadlineTimeOf,
  type StreamDocument,
  streamKey,
} from '../../../../src/storage/documents.ts'
import type { CatalogEntry } from '../state/catalog.ts'
import type { Log } from '../state/log.ts'
import type { Scan } from './scan.ts'

/** Streams by the id of their log. */
type StreamsOfLogs = ReadonlyMap<string, StreamDocument>

/**
 * Checks the engine's documents against each other, the logs and their blocks (`src/storage/documents.ts`).
 * Ignores unknown members, and settings and usage, which nothing depends on.
 */
export async function checkEngineDocuments(scan: Scan): Promise<void> {
  const { state, findings } = scan
  /** Numbers of the logs that belong to a stream. */
  const owned = new Set<number>()
  for await (const entry of state.catalog.entries()) {
    const place = scan.placeOf(entry)!
    try {
      await checkEntry(scan, entry, owned)
    } catch (error) {
      // Accessing a member of a value with an unexpected shape throws `TypeError`.
      if (error instanceof TypeError)
        findings.problem(place, `a document of ${entry.collection} has an unexpected shape`)
      else findings.failure(place, error)
    }
  }
  for await (const log of state.logs.values()) {
    if (owned.has(log.number)) continue
    const { file, offset } = scan.logPlaces.get(log.number)!
    findings.note(file, 'no stream refers to this log', { offset, log: log.id })
  }
}

/** The streams of logs for messages: includes every document that can be parsed. */
export async function streamsOfLogs({ state }: Scan): Promise<StreamsOfLogs> {
  const streams = new Map<string, StreamDocument>()
  for await (const { collection, text } of state.catalog.entries()) {
    if (collection !== 'streams') continue
    try {
      const document: StreamDocument = JSON.parse(text)
      if (typeof document.basin === 'string' && typeof document.name === 'string') {
        streams.set(document.logId, document)
      }
    } catch {
      // Reported elsewhere.
    }
  }
  return streams
}

async function checkEntry(
  scan: Scan,
  { collection, key, text }: CatalogEntry,
  owned: Set<number>,
): Promise<void> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Reported elsewhere.
    return
  }
  if (collection === 'basins') checkBasin(key, value as BasinDocument)
  else if (collection === 'streams') await checkStream(scan, key, value as StreamDocument, owned)
  else if (collection === 'deadlines') checkDeadline(key, value as DeadlineDocument)
  else if (collection === 'tokens') checkToken(key, value as { readonly id: string; readonly digest: string })
}

function checkBasin(key: string, { name, createdAt, config }: BasinDocument): void {
  if (name !== key) throw new RangeError('the key of a basin document does not match its name')
  if (basinNameProblem(name) !== undefined) throw new RangeError('a basin has an invalid name')
  requireNumber(createdAt, 'a basin')
  requireObject(config, 'a basin')
}

async function checkStream(
  scan: Scan,
  key: string,
  { basin, name, logId, createdAt, config, epoch, cipher, deletedAt }: StreamDocument,
  owned: Set<number>,
): Promise<void> {
  if (basinNameProblem(basin) !== undefined || streamKey(basin, name) !== key)
    throw new RangeError('the key of a stream document does not match its name')
  if (streamNameProblem(name) !== undefined) throw new RangeError('a stream has an invalid name')
  requireNumber(createdAt, 'a stream')
  requireObject(config, 'a stream')
  if ((await scan.state.catalog.get('basins', basin)) === undefined) {
    throw new RangeError('the basin of a stream is missing')
  }
  const log = await scan.state.logs.load(logId)
  if (deletedAt !== undefined) {
    if (log !== undefined) throw new RangeError('a deleted stream has a log')
    return
  }
  if (log === undefined) throw new RangeError('the log of a stream is missing')
  if (owned.has(log.number)) throw new RangeError('two streams share a log')
  owned.add(log.number)
  if (log.head.epoch !== epoch) {
    throw new RangeError(`a stream has epoch ${epoch}, but its log has epoch ${log.head.epoch}`)
  }
  checkCipher(scan, log, cipher)
  if (config.retentionPolicy === 'infinite') noteMissing(scan, log)
}

/** Freed blocks may have expired under an earlier retention policy: nothing shows it afterwards. */
function noteMissing({ findings, logPlaces }: Scan, { number, id, head, runs, blocks }: Log): void {
  const first = runs[0]?.liveFrom ?? blocks[0]?.firstSeqNum ?? head.tail.seqNum
  if (first <= head.trimPoint) return
  const { file, offset } = logPlaces.get(number)!
  const note =
    `the ${first - head.trimPoint} oldest records are missing, although they were not trimmed ` +
    'and the stream keeps records forever: they expired under an earlier retention policy'
  findings.note(file, note, { offset, log: id })
}

function checkCipher({ formats }: Scan, { number }: Log, cipher: StreamDocument['cipher']): void {
  const expected = cipher ?? 'plain'
  const format = formats.get(number) ?? expected
  if (format !== expected) throw new RangeError(`a stream is ${expected}, but its blocks are ${format}`)
}

/** Its log may be deleted: that is noticed when the deadline is due. */
function checkDeadline(key: string, deadline: DeadlineDocument): void {
  if (deadlineKey(deadlineTimeOf(key), deadline) !== key) {
    throw new RangeError('the key of a deadline does not match its log')
  }
}

function checkToken(key: string, { id, digest }: { readonly id: string; readonly digest: string }): void {
  if (id !== key) throw new RangeError('the key of a token document does not match its id')
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new RangeError('a token has no valid digest')
}

function requireNumber(value: number, owner: string): void {
  if (!Number.isFinite(value)) throw new RangeError(`${owner} has no creation time`)
}

function requireObject(value: object, owner: string): void {
  if (typeof value !== 'object' || value === null) throw new RangeError(`${owner} has no configuration`)
}

const COLLECTIONS: Readonly<Record<Collection, true>> = {
  basins: true,
  streams: true,
  deadlines: true,
  tokens: true,
  usage: true,
  settings: true,
}
const KEY_BYTES_MAX = 1024

/** Checks what holds for every document. Throws `RangeError`. */
export function checkDocument({ collection, key, text }: CatalogEntry): void {
  if (!Object.hasOwn(COLLECTIONS, collection))
    throw new RangeError('a document belongs to an unknown collection')
  const bytes = utf8Length(key)
  if (bytes > KEY_BYTES_MAX) throw new RangeError(`a document of ${collection} has a key of ${bytes} bytes`)
  try {
    JSON.parse(text)
  } catch {
    // The parser's message quotes the text, which may be secret.
    throw new RangeError(`a document of ${collection} is not valid JSON`)
  }
}
