import { compareUtf8 } from '../../../src/model/bytes.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { decodeSegments, decodeSkeleton } from '../../../src/storage/sealed-block.ts'
import { Damage, type Medium, type MediumFile, type ReadableMedium } from '../media/medium.ts'
import {
  decodeHeader,
  decodeOrThrowCorrupt,
  FORMAT_VERSION,
  fileName,
  HEADER_BYTES,
  parseFileName,
} from './format.ts'
import { isUnused, replay } from './recovery.ts'
import { blocksOf } from './segment.ts'
import { firstOf, type Log, type Segment, type State } from './state.ts'
import { entriesOf, type TablePart } from './table.ts'

const SEALED_MARK = 0x07
const UNUSED = { runs: 0, runBytes: 0 }
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

/** The result of {@link verifyDirectory}. */
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
  /** The problems in the order found; none if the directory is sound. */
  readonly problems: readonly VerifyProblem[]
  /** The notes in the order found. */
  readonly notes: readonly VerifyNote[]
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

/** Options of {@link verifyDirectory}. */
export interface DirectoryOptions {
  /** Receives the progress, often during the work. */
  readonly onProgress?: ((progress: DirectoryProgress) => void) | undefined
  /** Aborts the work: the lock is released, and the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Reads everything that an opening depends on, and changes nothing: checksums, the order and number of
 * records, and whether heads, runs and counts agree. If the checkpoint or a journal is damaged, the state is
 * unknown, and nothing else is checked.
 *
 * @internal
 */
export async function verifyLog(medium: Medium, options: DirectoryOptions = {}): Promise<VerifyReport> {
  const files = (await medium.list()).filter(({ name }) => parseFileName(name) !== undefined)
  const verification = new Verification(medium, files, options)
  await verification.run()
  return {
    files: files.length,
    bytes: verification.bytes,
    formatVersions: files.length === 0 ? [] : [FORMAT_VERSION],
    ...verification.counts,
    problems: verification.problems,
    notes: verification.notes,
  }
}

class Verification {
  readonly counts = { documents: 0, logs: 0, blocks: 0, records: 0 }
  readonly problems: VerifyProblem[] = []
  readonly notes: VerifyNote[] = []
  /** The length of all files. */
  readonly bytes: number
  readonly #medium: ReadableMedium
  readonly #files: readonly MediumFile[]
  readonly #options: DirectoryOptions
  /** The streams of logs. */
  readonly #streams = new Map<string, { readonly basin: string; readonly name: string }>()
  #read = 0

  constructor(medium: Medium, files: readonly MediumFile[], options: DirectoryOptions) {
    this.#files = files
    this.#options = options
    this.bytes = files.reduce((sum, { bytes }) => sum + bytes, 0)
    this.#medium = {
      read: (name, position, length) => {
        this.#progress(name, length)
        return medium.read(name, position, length)
      },
    }
  }

  async run(): Promise<void> {
    const newest = this.#files.findLast(({ name }) => !name.startsWith('segment'))
    const stateFile = newest?.name ?? fileName('journal', 1)
    await this.#guard(stateFile, async () => {
      const { state, first, torn } = await replay(this.#medium, this.#files, checkBlock)
      if (torn !== undefined) this.notes.push({ ...torn, note: 'an incomplete write, as after a crash' })
      for (const { name } of this.#files) {
        if (isUnused(name, state, first))
          this.notes.push({ file: name, note: 'unused: nothing refers to it' })
      }
      await this.#checkState(state, stateFile)
    })
    if (this.#files.length > 0) this.#progress(this.#files.at(-1)!.name, this.bytes)
  }

  /** Reports the damage that `check` meets, which is in this file if the error does not tell. */
  async #guard(file: string, check: () => Promise<void> | void, log?: string): Promise<void> {
    const { signal } = this.#options
    signal?.throwIfAborted()
    try {
      await check()
    } catch (error) {
      signal?.throwIfAborted()
      const stream = log === undefined ? undefined : this.#streams.get(log)
      const owner = { ...(log !== undefined && { log }), ...(stream && { stream }) }
      this.problems.push({ ...placeOf(error, file), ...owner })
    }
  }

  #progress(file: string, bytes: number): void {
    this.#options.signal?.throwIfAborted()
    // What is read twice counts once.
    this.#read = Math.min(this.#read + bytes, this.bytes)
    this.#options.onProgress?.({ done: this.#read, total: this.bytes, file })
  }

  async #checkState(state: State, stateFile: string): Promise<void> {
    for (const [collection, table] of state.collections) {
      for (const part of table.parts) checkOrder(part)
      for (const [, { text }] of table.values()) {
        this.counts.documents++
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
    /** What is in use, by segment. */
    const used = new Map<number, Pick<Segment, 'runs' | 'runBytes'>>()
    for (const [id, log] of state.logs.values()) {
      this.counts.logs++
      for (const { segment, bytes } of log.runs) {
        const { runs, runBytes } = used.get(segment) ?? UNUSED
        used.set(segment, { runs: runs + 1, runBytes: runBytes + bytes })
      }
      await this.#guard(stateFile, () => this.#checkLog(id, log), id)
      if (!this.#streams.has(id)) {
        this.notes.push({ file: stateFile, note: 'no stream refers to this log', log: id })
      }
    }
    for (const { number, runs, runBytes } of state.segments.values()) {
      const found = used.get(number) ?? UNUSED
      await this.#guard(stateFile, () => {
        if (found.runs === runs && found.runBytes === runBytes) return
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
  async #checkLog(id: string, log: Log): Promise<void> {
    const { head, runs, blocks, freedBelow } = log
    let meteredBytes = 0
    let next = firstOf(log)?.firstSeqNum ?? head.tail.seqNum
    const follow = (block: BlockSummary): void => {
      if (block.firstSeqNum !== next) throw new RangeError(`records ${next} are missing`)
      next = block.endSeqNum
      meteredBytes += block.meteredBytes
      this.counts.blocks++
      this.counts.records += block.endSeqNum - block.firstSeqNum
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
    if (next !== head.tail.seqNum) {
      throw new RangeError(`the blocks end at ${next}, and the head is at ${head.tail.seqNum}`)
    }
    if (meteredBytes !== log.meteredBytes) {
      throw new RangeError(`there are ${meteredBytes} metered bytes, not ${log.meteredBytes}`)
    }
  }
}

/** Where the damage is that an error reports. Other errors are thrown again. */
function placeOf(error: unknown, file: string): Pick<VerifyProblem, 'file' | 'offset' | 'problem'> {
  if (error instanceof Damage) return { file: error.file, offset: error.offset, problem: error.problem }
  if (error instanceof RangeError) return { file, offset: 0, problem: error.message }
  if (StorageFailure.is(error)) return { file, offset: 0, problem: `cannot be read: ${error.message}` }
  throw error
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
