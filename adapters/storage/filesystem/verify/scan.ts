import type { Collection } from '../../../../src/storage/contract.ts'
import type { Files } from '../files.ts'
import { State } from '../state.ts'
import type { BlockFormat } from './block-check.ts'
import { Findings, type Place } from './findings.ts'
import type { VerifyProgress } from './report.ts'

export interface ScanOptions {
  readonly onProgress?: ((progress: VerifyProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

/** What is known while a directory is verified. */
export class Scan {
  readonly files: Files
  readonly findings = new Findings()
  state = new State()
  /**
   * Whether changes were lost to damage. What later changes say of what came with them, and what the state says, is no further problem
   * then: the damage is one already.
   */
  isPartial = false
  /** How many files were read. */
  read = 0
  bytes = 0
  /** Of runs. */
  blocks = 0
  /** Of runs. */
  records = 0
  /** Where the last word on a document or a head stands. One object for all of a frame. */
  readonly documentPlaces = new Map<string, Place>()
  readonly logPlaces = new Map<number, Place>()
  /** Of the first block of each log that was looked at, by the log's number. */
  readonly formats = new Map<number, BlockFormat>()
  readonly #options: ScanOptions
  #file = ''
  #before = 0
  #total = 0

  constructor(files: Files, options: ScanOptions) {
    this.files = files
    this.#options = options
  }

  /** @param total Bytes to see to. */
  start(total: number): void {
    this.#total = total
  }

  /** From here on a file is read. */
  begin(file: string): void {
    this.#file = file
    this.read++
    this.at(0)
  }

  /** So far it was read. Throws the signal's reason when it is to stop. */
  at(offset: number): void {
    this.#options.signal?.throwIfAborted()
    const done = Math.min(this.#before + offset, this.#total)
    this.#options.onProgress?.({ done, total: this.#total, file: this.#file })
  }

  /** The file was read, or is passed over. */
  end(size: number): void {
    this.#before += size
    this.at(0)
  }
}

export function documentId(collection: Collection, key: string): string {
  return `${collection} ${key}`
}
