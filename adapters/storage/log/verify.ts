import { compareUtf8 } from '../../../src/model/bytes.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { decodeSegments, decodeSkeleton } from '../../../src/storage/sealed-block.ts'
import type { Medium, MediumFile, ReadableMedium } from '../media/medium.ts'
import {
  decodeHeader,
  decodeOrThrowCorrupt,
  FORMAT_VERSION,
  fileName,
  HEADER_BYTES,
  parseFileName,
} from './format.ts'
import { FoundFiles, isUnused, replay } from './recovery.ts'
import { blocksOf } from './segment.ts'
import type { Log, State } from './state.ts'
import { entriesOf, type TablePart } from './table.ts'

const SEALED_MARK = 0x07
/** A damaged directory may have a problem for every stream: so many are kept. */
const KEPT_MAX = 1000

/** Damage: something differs from what the storage wrote. */
export interface VerifyProblem {
  /** File name within the directory. */
  readonly file: string
  /** Bytes from the start of the file. */
  readonly offset: number
  /** The description of the problem. */
  readonly problem: string
  /** Id of the affected log, if any. */
  readonly log?: string | undefined
  /** The stream of that log, if the documents tell. */
  readonly stream?: { readonly basin: string; readonly name: string } | undefined
}

/** A remark that is not damage, such as leftovers of a crash or unused files. */
export interface VerifyNote {
  /** File name within the directory. */
  readonly file: string
  /** Bytes from the start of the file; absent if the note is about the whole file. */
  readonly offset?: number | undefined
  /** The description of what was found. */
  readonly note: string
  /** Id of the log that the note is about, if any. */
  readonly log?: string | undefined
}

/**
 * The result of {@link verifyDirectory}.
 *
 * ```ts
 * const report = await verifyDirectory('./data')
 * const { files, bytes, formatVersions, documents, logs, blocks, records } = report
 * console.log(`format ${formatVersions}: ${files} files, ${bytes} bytes, ${records} records`)
 * console.log(documents, logs, blocks, report.problemCount, report.noteCount)
 * for (const { file, offset, problem, log, stream } of report.problems) {
 *   console.log(file, offset, problem, stream?.name ?? log)
 * }
 * for (const { file, offset, note, log } of report.notes) console.log(file, offset, note, log)
 * ```
 */
export interface VerifyReport {
  /** Number of files read; 0 if nothing was ever written. */
  readonly files: number
  /** Bytes read. */
  readonly bytes: number
  /** The format versions of the files, ascending. */
  readonly formatVersions: readonly number[]
  /** Number of documents in the directory, as far as it could be read. */
  readonly documents: number
  /** Number of logs in the directory, as far as it could be read. */
  readonly logs: number
  /** Number of blocks that are not freed. */
  readonly blocks: number
  /** Number of records in these blocks. */
  readonly records: number
  /** The first 1,000 problems, in the order found. Empty if the directory is sound. */
  readonly problems: readonly VerifyProblem[]
  /** Number of all problems. */
  readonly problemCount: number
  /** The first 1,000 notes. */
  readonly notes: readonly VerifyNote[]
  /** Number of all notes. */
  readonly noteCount: number
}

/** The progress of a verification. */
export interface DirectoryProgress {
  /** Bytes processed so far. */
  readonly done: number
  /** Bytes to process. */
  readonly total: number
  /** Name of the file that is being read. */
  readonly file: string
}

export interface VerifyOptions {
  readonly onProgress?: ((progress: DirectoryProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Reads everything that an opening depends on, and changes nothing: checksums, the order and number of
 * records, and whether heads, runs and counts agree. If the checkpoint or a journal is damaged, the state is
 * unknown, and nothing else is checked.
 */
export async function verifyLog(medium: Medium, options: VerifyOptions = {}): Promise<VerifyReport> {
  const files = (await medium.list()).filter(({ name }) => parseFileName(name) !== undefined)
  return new Verification(medium, files, options).run()
}

type Counted = 'documents' | 'logs' | 'blocks' | 'records' | 'problemCount' | 'noteCount'

class Verification {
  readonly #medium: ReadableMedium
  readonly #files: readonly MediumFile[]
  readonly #options: VerifyOptions
  readonly #counts: Record<Counted, number> = {
    documents: 0,
    logs: 0,
    blocks: 0,
    records: 0,
    problemCount: 0,
    noteCount: 0,
  }
  readonly #problems: VerifyProblem[] = []
  readonly #notes: VerifyNote[] = []
  /** The streams of logs. */
  readonly #streams = new Map<string, { readonly basin: string; readonly name: string }>()
  readonly #bytes: number
  #read = 0

  constructor(medium: Medium, files: readonly MediumFile[], options: VerifyOptions) {
    this.#files = files
    this.#options = options
    this.#bytes = files.reduce((sum, { bytes }) => sum + bytes, 0)
    this.#medium = {
      read: (name, position, length) => {
        this.#progress(name, length)
        return medium.read(name, position, length)
      },
    }
  }

  async run(): Promise<VerifyReport> {
    const found = new FoundFiles(this.#files)
    await this.#guard(fileName('journal', found.first), async () => {
      const { state, journals } = await replay(this.#medium, found, checkBlock)
      const torn = found.torn.map((name) => ({ name, offset: 0 }))
      const { number, end } = journals.at(-1) ?? { number: 0, end: 0 }
      if (end < (found.bytesOf('journal', number) ?? 0)) {
        torn.push({ name: fileName('journal', number), offset: end })
      }
      for (const { name, offset } of torn)
        this.#note(name, 'an incomplete write, as after a crash', { offset })
      for (const { name } of this.#files) {
        if (isUnused(name, state, found.first)) this.#note(name, 'unused: nothing refers to it')
      }
      const newest = this.#files.findLast(({ name }) => !name.startsWith('segment'))
      await this.#checkState(state, newest?.name ?? fileName('journal', 1))
    })
    if (this.#files.length > 0) this.#progress(this.#files.at(-1)!.name, this.#bytes)
    const { problemCount, noteCount, ...counts } = this.#counts
    return {
      files: this.#files.length,
      bytes: this.#bytes,
      formatVersions: this.#files.length === 0 ? [] : [FORMAT_VERSION],
      ...counts,
      problems: this.#problems,
      problemCount,
      notes: this.#notes,
      noteCount,
    }
  }

  /** Reports the damage that `check` meets, which is in this file if the error does not tell. */
  async #guard(file: string, check: () => Promise<void> | void, log?: string): Promise<void> {
    const { signal } = this.#options
    signal?.throwIfAborted()
    try {
      await check()
    } catch (error) {
      signal?.throwIfAborted()
      const isDamage = error instanceof RangeError
      if (!isDamage && !StorageFailure.is(error)) throw error
      const { message } = error as Error
      const [, place, offset, problem] = /^(\S+) is damaged at offset (\d+): (.*)$/s.exec(message) ?? []
      const stream = log === undefined ? undefined : this.#streams.get(log)
      this.#counts.problemCount++
      if (this.#problems.length >= KEPT_MAX) return
      this.#problems.push({
        file: place ?? file,
        offset: Number(offset ?? 0),
        problem: problem ?? (isDamage ? message : `cannot be read: ${message}`),
        ...(log !== undefined && { log }),
        ...(stream && { stream }),
      })
    }
  }

  #note(file: string, note: string, about: Pick<VerifyNote, 'offset' | 'log'> = {}): void {
    this.#counts.noteCount++
    if (this.#notes.length < KEPT_MAX) this.#notes.push({ file, ...about, note })
  }

  #progress(file: string, bytes: number): void {
    this.#options.signal?.throwIfAborted()
    // What is read twice counts once.
    this.#read = Math.min(this.#read + bytes, this.#bytes)
    this.#options.onProgress?.({ done: this.#read, total: this.#bytes, file })
  }

  async #checkState(state: State, stateFile: string): Promise<void> {
    /** Runs in use and their bytes, by segment. */
    const used = new Map<number, { runs: number; bytes: number }>()
    for (const [collection, table] of state.collections) {
      for (const part of table.parts) checkOrder(part)
      for (const [, { text }] of table.values()) {
        this.#counts.documents++
        await this.#guard(stateFile, () => this.#checkDocument(collection, text))
      }
    }
    for (const { number, bytes, runs } of state.segments.values()) {
      const name = fileName('segment', number)
      const check = async () =>
        void decodeHeader(await this.#medium.read(name, 0, Math.min(HEADER_BYTES, bytes)), name)
      if (runs > 0) await this.#guard(name, check)
    }
    for (const part of state.logs.parts) checkOrder(part)
    for (const [id, log] of state.logs.values()) {
      this.#counts.logs++
      for (const run of log.runs) {
        const { runs, bytes } = used.get(run.segment) ?? { runs: 0, bytes: 0 }
        used.set(run.segment, { runs: runs + 1, bytes: bytes + run.bytes })
      }
      await this.#guard(stateFile, () => this.#checkLog(id, log), id)
      if (!this.#streams.has(id)) this.#note(stateFile, 'no stream refers to this log', { log: id })
    }
    for (const { number, runs, runBytes } of state.segments.values()) {
      const found = used.get(number) ?? { runs: 0, bytes: 0 }
      await this.#guard(stateFile, () => {
        if (found.runs === runs && found.bytes === runBytes) return
        throw new RangeError(`segment ${number} has ${found.runs} runs in use, not ${runs}`)
      })
    }
  }

  #checkDocument(collection: string, text: string): void {
    try {
      const { logId, basin, name } = JSON.parse(text) as { logId: string; basin: string; name: string }
      if (collection === 'streams') this.#streams.set(logId, { basin, name })
    } catch {
      // The parser's message quotes the text, which may be secret.
      throw new RangeError(`a document of ${collection} is not valid JSON`)
    }
  }

  /** Throws `RangeError` unless the blocks of a log follow each other up to its head, and are counted. */
  async #checkLog(id: string, { head, runs, blocks, freedBelow, first, ...log }: Log): Promise<void> {
    let meteredBytes = 0
    let next: number | undefined
    const follow = (block: BlockSummary): void => {
      const expected = next ?? first?.firstSeqNum
      if (block.firstSeqNum !== expected) throw new RangeError(`records ${expected} are missing`)
      next = block.endSeqNum
      meteredBytes += block.meteredBytes
      this.#counts.blocks++
      this.#counts.records += block.endSeqNum - block.firstSeqNum
    }
    for (const run of runs) {
      for await (const block of blocksOf(this.#medium, id, run, freedBelow)) {
        decodeOrThrowCorrupt(fileName('segment', run.segment), run.offset, () => {
          follow(block)
          checkBlock(block, block.data)
        })
      }
    }
    // Their data were checked when the journals were read.
    for (const block of blocks) follow(block)
    if ((next ?? head.tail.seqNum) !== head.tail.seqNum) {
      throw new RangeError(`the blocks end at ${next}, and the head is at ${head.tail.seqNum}`)
    }
    if (meteredBytes !== log.meteredBytes) {
      throw new RangeError(`there are ${meteredBytes} metered bytes, not ${log.meteredBytes}`)
    }
  }
}

/** Throws `RangeError` unless the entries are in order. */
function checkOrder({ entries }: TablePart): void {
  let before: string | undefined
  for (const { key } of entriesOf(entries)) {
    if (before !== undefined && compareUtf8(before, key) >= 0) throw new RangeError('keys are out of order')
    before = key
  }
}

/** Throws `RangeError` unless the records of a block match its metadata. */
function checkBlock(block: BlockSummary, data: Uint8Array): void {
  let metered = 0
  let records: readonly SequencedRecord[]
  if (data[0] === SEALED_MARK) {
    const segments = decodeSegments(data)
    records = segments.flatMap(({ skeleton }) => decodeSkeleton(skeleton))
    for (const { meteredBytes } of segments) metered += meteredBytes
  } else {
    records = decodeRecords(data)
    for (const { headers, body } of records) metered += meteredBytesOf(headers, body)
  }
  const count = block.endSeqNum - block.firstSeqNum
  if (records.length !== count) throw new RangeError(`a block has ${records.length} records, not ${count}`)
  let timestamp = block.firstTimestamp
  for (const [index, record] of records.entries()) {
    const seqNum = block.firstSeqNum + index
    if (record.seqNum !== seqNum) throw new RangeError(`record ${seqNum} has number ${record.seqNum}`)
    if (record.timestamp < timestamp) throw new RangeError(`record ${seqNum} is older than the one before it`)
    timestamp = record.timestamp
  }
  if (records[0]?.timestamp !== block.firstTimestamp || timestamp !== block.lastTimestamp) {
    throw new RangeError('the timestamps of a block do not match its records')
  }
  if (metered !== block.meteredBytes) {
    throw new RangeError(`a block has ${metered} metered bytes, not ${block.meteredBytes}`)
  }
}
