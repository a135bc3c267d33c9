import { HeadwaterError } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import {
  decodeEntry,
  type ExportCounts,
  type ExportEntry,
  type ExportedStream,
  type ExportHeader,
  RECORD_PREFIX,
} from './export-entry.ts'
import type { Line } from './lines.ts'
import { TransferError } from './transfer-error.ts'

/** How far an interrupted export goes. */
export interface ResumePoint {
  readonly header: ExportHeader
  /** Records are counted in complete streams only. */
  readonly counts: ExportCounts
  readonly basin: string | undefined
  /** The last stream of the basin, complete or not. */
  readonly lastStream: string | undefined
  readonly openStream: OpenStream | undefined
  readonly isComplete: boolean
}

/** A stream whose export is incomplete. */
export interface OpenStream {
  readonly stream: ExportedStream
  readonly nextSeqNum: number
  /** The timestamp of the last exported record; 0 without one. */
  readonly lastTimestamp: number
  /** The number of exported records. */
  readonly records: number
}

interface ScannedStream {
  readonly stream: ExportedStream
  records: number
  /** The line of the last record. */
  last: Line | undefined
}

const RECORD_START = utf8(RECORD_PREFIX)

/** Finds the resume point in the lines of an export. Decodes only the last record of each stream. */
export class ResumeScan {
  #header: ExportHeader | undefined
  #counts = { basins: 0, streams: 0, records: 0 }
  #basin: string | undefined
  #lastStream: string | undefined
  #open: ScannedStream | undefined
  #isComplete = false

  add(line: Line): void {
    if (this.#isComplete) throw lineError(line, 'unexpected line after the end of the export')
    if (startsWith(line.bytes, RECORD_START)) {
      if (this.#open === undefined) throw lineError(line, 'unexpected record outside a stream')
      this.#open.records++
      this.#open.last = line
    } else this.#take(parseLine(line), line)
  }

  /** Returns undefined without a header line. */
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
      throw lineError(line, 'an export must begin with its header')
    }
    if (open !== undefined && entry.kind !== 'stream-end')
      throw lineError(line, 'the previous stream has no end')
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
        if (entry.stream.basin !== this.#basin) throw lineError(line, 'the stream does not follow its basin')
        this.#lastStream = entry.stream.name
        this.#open = { stream: entry.stream, records: 0, last: undefined }
        return
      case 'stream-end':
        if (entry.name !== open) throw lineError(line, 'the line ends another stream')
        this.#counts.streams++
        this.#counts.records += this.#open!.records
        this.#open = undefined
        return
      case 'record':
        throw lineError(line, 'unexpected record outside a stream')
      case 'end':
        this.#isComplete = true
    }
  }
}

function openStream({ stream, records, last }: ScannedStream): OpenStream {
  const entry = last && parseLine(last)
  if (entry?.kind !== 'record') return { stream, records, nextSeqNum: stream.start, lastTimestamp: 0 }
  const { seqNum, timestamp } = entry.record
  return { stream, records, nextSeqNum: seqNum + 1, lastTimestamp: timestamp }
}

/** Decodes a line. Throws {@link TransferError} with the line number. */
export function parseLine(line: Line): ExportEntry {
  try {
    return decodeEntry(line.bytes)
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    throw lineError(line, error.message)
  }
}

export function lineError({ number }: Line, problem: string): TransferError {
  return new TransferError(`line ${number}: ${problem}`)
}

export function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return bytes.length >= prefix.length && prefix.every((byte, i) => bytes[i] === byte)
}
