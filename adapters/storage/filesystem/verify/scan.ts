import type { Cipher } from '../../../../src/model/config.ts'
import type { Collection } from '../../../../src/storage/contract.ts'
import type { Files } from '../files/files.ts'
import { SequentialReader } from '../files/sequential-reader.ts'
import { State } from '../state/state.ts'
import { type DirectoryProgress, Findings, type Place } from './report.ts'

/** How the records of a block are encrypted. */
export type BlockFormat = 'plain' | Cipher

export interface ScanOptions {
  readonly onProgress?: ((progress: DirectoryProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

interface DocumentKey {
  readonly collection: Collection
  readonly key: string
}

/** The state of a verification. */
export class Scan {
  readonly files: Files
  readonly findings = new Findings()
  state = new State()
  /**
   * Whether changes were lost to damage. Later changes that do not fit the state are not reported as further
   * problems then.
   */
  isPartial = false
  /** Number of files read. */
  read = 0
  bytes = 0
  /** The blocks in runs. */
  blocks = 0
  /** The records in runs. */
  records = 0
  /** The place at which the current head of each log was written. All logs of a frame share one object. */
  readonly logPlaces = new Map<number, Place>()
  /** Format of the first block read of each log, by the log's number. */
  readonly formats = new Map<number, BlockFormat>()
  /**
   * How many records of a log, by its number, are missing from its runs although they were not trimmed and
   * older ones exist.
   */
  readonly missing = new Map<number, number>()
  readonly #documentPlaces = new Map<Collection, Map<string, Place>>()
  readonly #options: ScanOptions
  #file = ''
  #before = 0
  #total = 0

  constructor(files: Files, options: ScanOptions) {
    this.files = files
    this.#options = options
  }

  /** The place at which the current version of a document was written. */
  placeOf({ collection, key }: DocumentKey): Place | undefined {
    return this.#documentPlaces.get(collection)?.get(key)
  }

  setPlace({ collection, key }: DocumentKey, place: Place): void {
    const places = this.#documentPlaces.get(collection)
    if (places === undefined) this.#documentPlaces.set(collection, new Map([[key, place]]))
    else places.set(key, place)
  }

  /** @param total Bytes to check. */
  start(total: number): void {
    this.#total = total
  }

  /**
   * Opens a file that the state depends on, calls `work`, and closes it again. A failure is reported, and the
   * state is partial then.
   */
  async readFile(
    name: string,
    work: (reader: SequentialReader) => Promise<void>,
    keepsWindows = false,
  ): Promise<void> {
    let reader: SequentialReader | undefined
    try {
      reader = await SequentialReader.open(this.files, name, keepsWindows)
      this.begin(name)
      await work(reader)
    } catch (error) {
      this.isPartial = true
      this.findings.failure({ file: name, offset: reader?.offset ?? 0 }, error)
    } finally {
      await reader?.close()
    }
    if (reader === undefined) return
    this.bytes += reader.size
    this.end(reader.size)
  }

  /** Starts a file. */
  begin(file: string): void {
    this.#file = file
    this.read++
    this.at(0)
  }

  /** Reports the position in the current file. Throws the signal's reason if the verification was aborted. */
  at(offset: number): void {
    this.#options.signal?.throwIfAborted()
    const done = Math.min(this.#before + offset, this.#total)
    this.#options.onProgress?.({ done, total: this.#total, file: this.#file })
  }

  /** Finishes a file that was read or skipped. */
  end(size: number): void {
    this.#before += size
    this.at(0)
  }
}
