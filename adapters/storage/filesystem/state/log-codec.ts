import type { Head } from '../../../../src/storage/contract.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import { readHead, readList, readRun, writeHead, writeRun } from './field-codec.ts'
import { Log, nextTrimOf } from './log.ts'
import { liveFromOf, Run, type RunFacts, type Segment } from './segment.ts'

/** A log as a checkpoint stores it. */
export interface LogFacts {
  readonly number: number
  readonly id: string
  readonly head: Head
  readonly runs: readonly RunFacts[]
}

/** What can be read without decoding the log. */
interface LogKey {
  /** Offset of its end. */
  readonly end: number
  readonly number: number
  /** When something may have to be freed at the earliest, in milliseconds; infinite for never. */
  readonly due: number
}

export function writeLog(writer: ByteWriter, { number, id, head, runs }: LogFacts): void {
  const fields = new ByteWriter(256)
  fields.varint(number)
  fields.optional(dueOf(head, runs))
  fields.string(id)
  writeHead(fields, head)
  fields.varint(runs.length)
  for (const run of runs) writeRun(fields, run)
  writer.varint(fields.length)
  writer.raw(fields.bytes)
}

export function readLogKey(fields: ByteReader): LogKey {
  const length = fields.varint()
  const end = fields.offset + length
  return { end, number: fields.varint(), due: fields.optional() ?? Number.POSITIVE_INFINITY }
}

/** Throws `RangeError` if the item is malformed or refers to a segment that does not exist. */
export function readLog(item: Buffer, segments: ReadonlyMap<number, Segment>): Log {
  const fields = new ByteReader(item)
  const { number } = readLogKey(fields)
  const log = new Log(number, fields.string(), readHead(fields))
  const runs = readList(fields, () => {
    const facts = readRun(fields)
    const home = segments.get(facts.segment)
    if (home === undefined) throw new RangeError(`segment ${facts.segment} does not exist`)
    return new Run(home, facts)
  })
  if (fields.left > 0) throw new RangeError('a log is longer than its fields')
  if (runs.length > 0) log.runs = runs
  for (const { meteredBytes } of runs) log.meteredBytes += meteredBytes
  log.updateNextExpiry()
  return log
}

/** A log in a checkpoint has no blocks in journals. */
function dueOf({ trims }: Head, runs: readonly RunFacts[]): number | null {
  const [first] = runs
  let due = first && nextTrimOf(trims, liveFromOf(first))
  for (const { minExpiry } of runs) if (minExpiry !== null) due = Math.min(due ?? minExpiry, minExpiry)
  return due ?? null
}
