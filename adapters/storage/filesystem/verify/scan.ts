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

interface DocumentKey {
  readonly collection: Collection
  readonly key: string
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
  /** Where the last word on a head stands. One object for all of a frame. */
  readonly logPlaces = new Map<number, Place>()
  /** Of the first block of each log that was looked at, by the log's number. */
  readonly formats = new Map<number, BlockFormat>()
  /** How many records of a log, by its number, are not in its runs although they were not trimmed and older ones are. */
  readonly missing = new Map<number, number>()
  /** The keys are those of the catalog: strings of their own would take more memory than all else here. */
  readonly #documentPlaces = new Map<Collection, Map<string, Place>>()
  readonly #options: ScanOptions
  #file = ''
  #before = 0
  #total = 0

  constructor(files: Files, options: ScanOptions) {
    this.files = files
    this.#options = options
  }

  /** Where the last word on a document stands. */
  placeOf({ collection, key }: DocumentKey): Place | undefined {
    return this.#documentPlaces.get(collection)?.get(key)
  }

  setPlace({ collection, key }: DocumentKey, place: Place): void {
    const places = this.#documentPlaces.get(collection)
    if (places === undefined) this.#documentPlaces.set(collection, new Map([[key, place]]))
    else places.set(key, place)
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
