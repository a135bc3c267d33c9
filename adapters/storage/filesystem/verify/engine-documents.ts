import {
  DEADLINE_PREFIX,
  type DeadlineDocument,
  deadlineKey,
  deadlineTimeOf,
} from '../../../../src/engine/deadlines.ts'
import { type BasinDocument, type StreamDocument, streamKey } from '../../../../src/engine/documents.ts'
import { basinNameProblem, streamNameProblem } from '../../../../src/model/names.ts'
import type { CatalogEntry } from '../catalog.ts'
import type { Log } from '../log.ts'
import type { Scan } from './scan.ts'

/** The stream that has a log, by the log's id. */
type StreamsOfLogs = ReadonlyMap<string, StreamDocument>

/**
 * What the engine's documents say of each other, of the logs and of their blocks (`src/engine/documents.ts`). Members that it does not know are left alone, as
 * are settings and usage, which nothing rests on.
 */
export function checkEngineDocuments(scan: Scan): void {
  const { state, findings } = scan
  /** Logs that streams have. */
  const owned = new Set<Log>()
  for (const entry of state.catalog.entries()) {
    const place = scan.placeOf(entry)!
    try {
      checkEntry(scan, entry, owned)
    } catch (error) {
      // A value of another shape than expected throws `TypeError` where a member is looked at.
      if (error instanceof TypeError)
        findings.problem(place, `a document of ${entry.collection} has another shape`)
      else findings.failure(place, error)
    }
  }
  for (const log of state.logsByNumber.values()) {
    if (owned.has(log)) continue
    const { file, offset } = scan.logPlaces.get(log.number)!
    findings.note(file, 'a log that no stream refers to', { offset, log: log.id })
  }
}

/** For messages: whatever of the documents can be made sense of. */
export function streamsOfLogs({ state }: Scan): StreamsOfLogs {
  const streams = new Map<string, StreamDocument>()
  for (const { collection, text } of state.catalog.entries()) {
    if (collection !== 'streams') continue
    try {
      const document: StreamDocument = JSON.parse(text)
      if (typeof document.basin === 'string' && typeof document.name === 'string') {
        streams.set(document.logId, document)
      }
    } catch {
      // It is a problem already.
    }
  }
  return streams
}

function checkEntry(scan: Scan, { collection, key, text }: CatalogEntry, owned: Set<Log>): void {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // It is a problem already.
    return
  }
  if (collection === 'basins') checkBasin(key, value as BasinDocument)
  else if (collection === 'streams') checkStream(scan, key, value as StreamDocument, owned)
  else if (collection === 'deadlines') checkDeadline(key, value as DeadlineDocument)
  else if (collection === 'tokens') checkToken(key, value as { readonly id: string; readonly digest: string })
}

function checkBasin(key: string, { name, createdAt, config }: BasinDocument): void {
  if (name !== key) throw new RangeError('the document of a basin has the key of another')
  if (basinNameProblem(name) !== undefined) throw new RangeError('a basin has a name that none may have')
  requireNumber(createdAt, 'a basin')
  requireObject(config, 'a basin')
}

function checkStream(
  scan: Scan,
  key: string,
  { basin, name, logId, createdAt, config, epoch, cipher }: StreamDocument,
  owned: Set<Log>,
): void {
  if (basinNameProblem(basin) !== undefined || streamKey(basin, name) !== key)
    throw new RangeError('the document of a stream has the key of another')
  if (streamNameProblem(name) !== undefined) throw new RangeError('a stream has a name that none may have')
  requireNumber(createdAt, 'a stream')
  requireObject(config, 'a stream')
  if (scan.state.catalog.versionOf('basins', basin) === null) {
    throw new RangeError('the basin of a stream is missing')
  }
  const log = scan.state.logsById.get(logId)
  if (log === undefined) throw new RangeError('the log of a stream is missing')
  if (owned.has(log)) throw new RangeError('two streams have one log')
  owned.add(log)
  if (log.head.epoch !== epoch) {
    throw new RangeError(`a stream of epoch ${epoch} has a log of epoch ${log.head.epoch}`)
  }
  checkCipher(scan, log, cipher)
  if (config.retentionPolicy === 'infinite') noteMissing(scan, log)
}

/** Whether they expired is known to nobody once their blocks are freed: the retention may have been another one. */
function noteMissing({ findings, logPlaces }: Scan, { number, id, head, runs, blocks }: Log): void {
  const first = runs[0]?.liveFrom ?? blocks[0]?.firstSeqNum ?? head.tail.seqNum
  if (first <= head.trimPoint) return
  const { file, offset } = logPlaces.get(number)!
  const note = `the ${first - head.trimPoint} oldest records are not there that were not trimmed, and the stream keeps records for ever: they expired before that was so`
  findings.note(file, note, { offset, log: id })
}

function checkCipher({ formats }: Scan, { number }: Log, cipher: StreamDocument['cipher']): void {
  const expected = cipher ?? 'plain'
  const format = formats.get(number) ?? expected
  if (format !== expected) throw new RangeError(`a stream is ${expected}, and its blocks are ${format}`)
}

/** Its log may be gone: that is found out when it is due. */
function checkDeadline(key: string, { logId }: DeadlineDocument): void {
  if (!key.startsWith(DEADLINE_PREFIX) || deadlineKey(deadlineTimeOf(key), logId) !== key) {
    throw new RangeError('a deadline has the key of another')
  }
}

function checkToken(key: string, { id, digest }: { readonly id: string; readonly digest: string }): void {
  if (id !== key) throw new RangeError('the document of a token has the key of another')
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new RangeError('a token has no digest')
}

function requireNumber(value: number, owner: string): void {
  if (!Number.isFinite(value)) throw new RangeError(`${owner} has no time of creation`)
}

function requireObject(value: object, owner: string): void {
  if (typeof value !== 'object' || value === null) throw new RangeError(`${owner} has no configuration`)
}
