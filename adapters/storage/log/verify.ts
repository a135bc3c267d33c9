import { compareUtf8 } from '../../../src/model/bytes.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
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
import { blocksAt, readIndex } from './segment.ts'
import type { Log, Run, State } from './state.ts'
import { entriesOf, type TablePart } from './table.ts'
import { type DirectoryProgress, Findings, type VerifyReport } from './verify-report.ts'

const SEALED_MARK = 0x07

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

class Verification {
  readonly #medium: ReadableMedium
  readonly #files: readonly MediumFile[]
  readonly #options: VerifyOptions
  readonly #findings = new Findings()
  readonly #bytes: number
  /** Runs in use and their bytes, by segment. */
  readonly #used = new Map<number, { runs: number; bytes: number }>()
  #read = 0
  #documents = 0
  #logs = 0
  #blocks = 0
  #records = 0

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
      const last = journals.at(-1)
      const length = last && found.bytesOf('journal', last.number)
      if (last !== undefined && last.end < length!) this.#noteTorn(fileName('journal', last.number), last.end)
      for (const name of found.torn) this.#noteTorn(name, 0)
      for (const { name } of this.#files) {
        if (isUnused(name, state, found.first)) this.#findings.note(name, 'unused: nothing refers to it')
      }
      await this.#checkState(state)
    })
    if (this.#files.length > 0) this.#progress(this.#files.at(-1)!.name, this.#bytes)
    return {
      files: this.#files.length,
      bytes: this.#bytes,
      formatVersions: this.#files.length === 0 ? [] : [FORMAT_VERSION],
      documents: this.#documents,
      logs: this.#logs,
      blocks: this.#blocks,
      records: this.#records,
      ...this.#findings.report,
    }
  }

  #noteTorn(name: string, offset: number): void {
    this.#findings.note(name, 'an incomplete write, as after a crash', { offset })
  }

  /** Records the damage that `check` meets, which is in this file if the error does not tell. */
  async #guard(file: string, check: () => Promise<void>, log?: string): Promise<void> {
    this.#options.signal?.throwIfAborted()
    try {
      await check()
    } catch (error) {
      this.#options.signal?.throwIfAborted()
      this.#findings.failure(error, file, log)
    }
  }

  #progress(file: string, bytes: number): void {
    this.#options.signal?.throwIfAborted()
    // What is read twice counts once.
    this.#read = Math.min(this.#read + bytes, this.#bytes)
    this.#options.onProgress?.({ done: this.#read, total: this.#bytes, file })
  }

  async #checkState(state: State): Promise<void> {
    const newest = this.#files.findLast(({ name }) => !name.startsWith('segment'))
    const stateFile = newest?.name ?? fileName('journal', 1)
    this.#checkDocuments(state, stateFile)
    for (const { number, bytes, runs } of state.segments.values()) {
      const name = fileName('segment', number)
      const check = async () => {
        decodeHeader(await this.#medium.read(name, 0, Math.min(HEADER_BYTES, bytes)), name)
      }
      if (runs > 0) await this.#guard(name, check)
    }
    for (const part of state.logs.parts) checkOrder(part)
    for (const [id, log] of state.logs.values()) {
      this.#logs++
      await this.#guard(stateFile, () => this.#checkLog(id, log), id)
      if (!this.#findings.streams.has(id)) {
        this.#findings.note(stateFile, 'no stream refers to this log', { log: id })
      }
    }
    for (const { number, runs, runBytes } of state.segments.values()) {
      const { runs: found, bytes } = this.#used.get(number) ?? { runs: 0, bytes: 0 }
      if (found === runs && bytes === runBytes) continue
      this.#findings.problem(stateFile, 0, `segment ${number} has ${found} runs in use, not ${runs}`)
    }
  }

  #checkDocuments(state: State, stateFile: string): void {
    for (const [collection, table] of state.collections) {
      for (const part of table.parts) checkOrder(part)
      for (const [, { text }] of table.values()) {
        this.#documents++
        try {
          const value = JSON.parse(text) as { logId: string; basin: string; name: string }
          const { logId, basin, name } = value
          if (collection === 'streams') this.#findings.streams.set(logId, { basin, name })
        } catch {
          // The parser's message quotes the text, which may be secret.
          this.#findings.problem(stateFile, 0, `a document of ${collection} is not valid JSON`)
        }
      }
    }
  }

  /** Throws `RangeError` unless the blocks of a log follow each other up to its head, and are counted. */
  async #checkLog(id: string, log: Log): Promise<void> {
    const { head, runs, blocks, freedBelow } = log
    let meteredBytes = 0
    let next: number | undefined
    const follow = (block: BlockSummary): void => {
      if (next !== undefined && block.firstSeqNum !== next)
        throw new RangeError(`records ${next} are missing`)
      next = block.endSeqNum
      if (block.endSeqNum <= freedBelow) return
      meteredBytes += block.meteredBytes
      this.#blocks++
      this.#records += block.endSeqNum - block.firstSeqNum
    }
    for (const run of runs) {
      const { runs: count, bytes } = this.#used.get(run.segment) ?? { runs: 0, bytes: 0 }
      this.#used.set(run.segment, { runs: count + 1, bytes: bytes + run.bytes })
    }
    for (const run of runs) await this.#checkRun(id, run, freedBelow, follow)
    for (const block of blocks) follow(block)
    if (next !== undefined && next !== head.tail.seqNum) {
      throw new RangeError(`the blocks end at ${next}, and the head is at ${head.tail.seqNum}`)
    }
    if (meteredBytes !== log.meteredBytes) {
      throw new RangeError(`there are ${meteredBytes} metered bytes, not ${log.meteredBytes}`)
    }
  }

  async #checkRun(
    id: string,
    run: Run,
    freedBelow: number,
    follow: (block: BlockSummary) => void,
  ): Promise<void> {
    let count = 0
    const name = fileName('segment', run.segment)
    for (const place of await readIndex(this.#medium, id, run)) {
      const bytes = await this.#medium.read(name, place.offset, place.bytes)
      const blocks = blocksAt(name, place, bytes, place.offset, id)
      count += blocks.length
      decodeOrThrowCorrupt(name, place.offset, () => {
        for (const block of blocks) {
          follow(block)
          if (block.endSeqNum > freedBelow) checkBlock(block, block.data)
        }
      })
    }
    if (count !== run.blocks) throw new RangeError(`a run has ${count} blocks, not ${run.blocks}`)
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
