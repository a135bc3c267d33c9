import { HeadwaterError } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { decodeEntry } from './decode-entry.ts'
import {
  type ExportCounts,
  type ExportEntry,
  type ExportedStream,
  type ExportHeader,
  RECORD_PREFIX,
} from './export-entry.ts'
import type { Line } from './lines.ts'
import { TransferError } from './transfer-error.ts'

/** How far an interrupted export came. */
export interface ResumePoint {
  readonly header: ExportHeader
  /** Of records: those of the streams that are complete. */
  readonly counts: ExportCounts
  readonly basin: string | undefined
  /** The last stream of the basin that is there, complete or not. */
  readonly lastStream: string | undefined
  readonly openStream: OpenStream | undefined
  readonly isComplete: boolean
}

/** A stream that an export has begun with. */
export interface OpenStream {
  readonly stream: ExportedStream
  readonly nextSeqNum: number
  /** Of its last record that is there; 0 when there is none. */
  readonly lastTimestamp: number
  /** How many of its records are there. */
  readonly records: number
}

interface ScannedStream {
  readonly stream: ExportedStream
  records: number
  /** The line of its last record. */
  last: Line | undefined
}

const RECORD_START = utf8(RECORD_PREFIX)

/** Looks through the lines of an export for the point that it came to. Of the records it reads the last of a stream only. */
export class ResumeScan {
  #header: ExportHeader | undefined
  #counts = { basins: 0, streams: 0, records: 0 }
  #basin: string | undefined
  #lastStream: string | undefined
  #open: ScannedStream | undefined
  #isComplete = false

  add(line: Line): void {
    if (this.#isComplete) throw notAsItShouldBe(line, 'it stands behind the end')
    if (startsWith(line.bytes, RECORD_START)) {
      if (this.#open === undefined) throw notAsItShouldBe(line, 'a record stands outside of a stream')
      this.#open.records++
      this.#open.last = line
    } else this.#take(entryOf(line), line)
  }

  /** Undefined when there is nothing to go on from. */
  point(): ResumePoint | undefined {
    if (this.#header === undefined) return undefined
    return {
      header: this.#header,
      counts: { ...this.#counts },
      basin: this.#basin,
      lastStream: this.#lastStream,
      openStream: this.#open && openStream(this.#open),
      isComplete: this.#isComplete,
    }
  }

  #take(entry: ExportEntry, line: Line): void {
    const { name: open } = this.#open?.stream ?? {}
    if ((entry.kind === 'header') !== (this.#header === undefined)) {
      throw notAsItShouldBe(line, 'an export begins with its header')
    }
    if (open !== undefined && entry.kind !== 'stream-end') throw notAsItShouldBe(line, 'a stream has no end')
    switch (entry.kind) {
      case 'header':
        this.#header = entry
        return
      case 'basin':
        this.#counts.basins++
        this.#basin = entry.name
        this.#lastStream = undefined
        return
      case 'stream':
        if (entry.stream.basin !== this.#basin) throw notAsItShouldBe(line, 'its basin is not there')
        this.#lastStream = entry.stream.name
        this.#open = { stream: entry.stream, records: 0, last: undefined }
        return
      case 'stream-end':
        if (entry.name !== open) throw notAsItShouldBe(line, 'another stream ends than began')
        this.#counts.streams++
        this.#counts.records += this.#open!.records
        this.#open = undefined
        return
      case 'record':
        throw notAsItShouldBe(line, 'a record stands outside of a stream')
      case 'end':
        this.#isComplete = true
    }
  }
}

function openStream({ stream, records, last }: ScannedStream): OpenStream {
  const entry = last && entryOf(last)
  if (entry?.kind !== 'record') return { stream, records, nextSeqNum: stream.start, lastTimestamp: 0 }
  const { seqNum, timestamp } = entry.record
  return { stream, records, nextSeqNum: seqNum + 1, lastTimestamp: timestamp }
}

/** A line as what it says. Throws {@link TransferError} with its number. */
export function entryOf(line: Line): ExportEntry {
  try {
    return decodeEntry(line.bytes)
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    throw notAsItShouldBe(line, error.message)
  }
}

export function notAsItShouldBe({ number }: Line, problem: string): TransferError {
  return new TransferError(`line ${number}: ${problem}`)
}

export function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return bytes.length >= prefix.length && prefix.every((byte, i) => bytes[i] === byte)
}
