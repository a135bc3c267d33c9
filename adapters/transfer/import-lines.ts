import { sameConfig } from '../../src/core/provision.ts'
import type { BasinConfig } from '../../src/index.ts'
import { compareUtf8 } from '../../src/model/compare-utf8.ts'
import type { ExportCounts, ExportEntry, ExportedStream } from './export-entry.ts'
import { StreamImport } from './import-stream.ts'
import type { Line } from './lines.ts'
import { matchesName, type TransferFilter } from './name-filter.ts'
import { entryOf, notAsItShouldBe } from './resume-point.ts'
import { aboutStream, type Service } from './service.ts'
import { TransferError } from './transfer-error.ts'

export interface ImportOptions {
  readonly filter: TransferFilter
  /** Whether to go on with what was imported before. */
  readonly resume: boolean
  /** Told as lines were worked on, of the stream that they belong to. */
  readonly onProgress?: (counts: ExportCounts, stream: string | undefined) => void
  /** Told what could not be made sure of. */
  readonly onWarning?: (message: string) => void
}

/**
 * Imports the lines of an export, one stream after the other, and resolves to how much of it passed the filter.
 *
 * @throws TransferError with the number of the line; of kind `incomplete` when the lines end before the export does.
 */
export async function importLines(
  input: AsyncIterable<readonly Line[]>,
  service: Service,
  options: ImportOptions,
): Promise<ExportCounts> {
  const importing = new Import(service, options)
  try {
    for await (const lines of input) {
      for (const line of lines) await importing.take(entryOf(line), line)
      importing.tell()
    }
    return await importing.finish()
  } finally {
    importing.abandon()
  }
}

class Import {
  readonly #service: Service
  readonly #options: ImportOptions
  /** How far the lines are in order. */
  #isBegun = false
  #isComplete = false
  #basin: ImportedBasin | undefined
  #open:
    | { readonly stream: ExportedStream; readonly import: StreamImport | undefined; records: number }
    | undefined
  #lastStream: string | undefined
  /** Of the input, and of what passed the filter. */
  readonly #seen = { basins: 0, streams: 0, records: 0 }
  readonly #imported = { basins: 0, streams: 0, records: 0 }

  constructor(service: Service, options: ImportOptions) {
    this.#service = service
    this.#options = options
  }

  async take(entry: ExportEntry, line: Line): Promise<void> {
    try {
      this.#checkPlace(entry)
      await this.#import(entry)
    } catch (error) {
      if (!(error instanceof TransferError) || error.kind === 'aborted') throw error
      throw notAsItShouldBe(line, error.message)
    }
  }

  tell(): void {
    const { basins, streams, records } = this.#imported
    const open = this.#open?.import === undefined ? 0 : this.#open.records
    this.#options.onProgress?.({ basins, streams, records: records + open }, this.#open?.stream.name)
  }

  async finish(): Promise<ExportCounts> {
    if (this.#isComplete) return this.#imported
    await this.#open?.import?.leave()
    const problem = this.#isBegun
      ? 'the input ends before its end: it was cut off. What it holds is imported; --resume goes on with the whole one'
      : 'the input is no export: it is empty'
    throw new TransferError(problem, { kind: 'incomplete' })
  }

  abandon(): void {
    this.#open?.import?.abandon()
  }

  #checkPlace(entry: ExportEntry): void {
    if (this.#isComplete) throw new TransferError('it stands behind the end of the export')
    if ((entry.kind === 'header') === this.#isBegun)
      throw new TransferError('an export begins with its header')
    const isOfStream = entry.kind === 'record' || entry.kind === 'stream-end'
    if (isOfStream !== (this.#open !== undefined)) {
      throw new TransferError(isOfStream ? 'it belongs to no stream' : 'the stream before it has no end')
    }
  }

  async #import(entry: ExportEntry): Promise<void> {
    switch (entry.kind) {
      case 'header':
        this.#isBegun = true
        return
      case 'basin':
        return this.#beginBasin(entry.name, entry.config)
      case 'stream':
        return this.#beginStream(entry.stream)
      case 'record':
        this.#open!.records++
        return this.#open!.import?.add(entry.record)
      case 'stream-end':
        return this.#endStream(entry.name, entry.records)
      case 'end':
        if (!sameCounts(entry.counts, this.#seen)) throw new TransferError('parts of the export are missing')
        this.#isComplete = true
    }
  }

  async #beginBasin(name: string, config: BasinConfig): Promise<void> {
    if (this.#basin !== undefined && compareUtf8(name, this.#basin.name) <= 0) {
      throw new TransferError('basins must be in the order of their names, each once')
    }
    this.#seen.basins++
    this.#lastStream = undefined
    const isWanted = matchesName(this.#options.filter.basins, name)
    this.#basin = { name, config, isWanted, isNew: isWanted && (await this.#ensureBasin(name, config)) }
    if (isWanted) this.#imported.basins++
  }

  /** Whether the basin was made. */
  async #ensureBasin(name: string, config: BasinConfig): Promise<boolean> {
    const existing = await this.#service.basinConfig(name)
    if (existing !== undefined && !this.#options.resume && !sameConfig(existing, config)) {
      throw new TransferError(
        `basin ${name} exists with another configuration: --resume gives it that of the export`,
      )
    }
    if (existing === undefined || !sameConfig(existing, config)) await this.#service.ensureBasin(name, config)
    return existing === undefined
  }

  async #beginStream(stream: ExportedStream): Promise<void> {
    const basin = this.#basin
    if (stream.basin !== basin?.name) throw new TransferError('a stream must follow its basin')
    if (this.#lastStream !== undefined && compareUtf8(stream.name, this.#lastStream) <= 0) {
      throw new TransferError('streams must be in the order of their names, each once')
    }
    this.#lastStream = stream.name
    const isWanted = basin.isWanted && matchesName(this.#options.filter.streams, stream.name)
    const begun = isWanted
      ? await StreamImport.begin(stream, {
          service: this.#service,
          withCipher: (create) => this.#withCipher(basin, stream, create),
          isNew: basin.isNew,
          resume: this.#options.resume,
          warn: (message) => this.#options.onWarning?.(message),
        })
      : undefined
    this.#open = { stream, import: begun, records: 0 }
  }

  async #endStream(name: string, records: number): Promise<void> {
    const open = this.#open!
    if (name !== open.stream.name) throw new TransferError('another stream ends than began')
    if (records !== open.records) {
      throw new TransferError(`${aboutStream(open.stream)} has ${open.records} records, not ${records}`)
    }
    await open.import?.finish()
    this.#open = undefined
    for (const counts of open.import ? [this.#seen, this.#imported] : [this.#seen]) {
      counts.streams++
      counts.records += records
    }
  }

  /** A stream gets its cipher from its basin, whose configuration may have changed since. */
  async #withCipher(
    basin: ImportedBasin,
    stream: ExportedStream,
    create: () => Promise<unknown>,
  ): Promise<void> {
    const { cipher } = stream
    if (basin.config.streamCipher === cipher) {
      await create()
      return
    }
    if (cipher === null && !basin.isNew && !this.#options.resume) {
      throw new TransferError(
        `${aboutStream(stream)} is not encrypted, and to make it so, all new streams of the basin would not be for a moment: --resume does it, when nobody else makes streams there`,
      )
    }
    const uninterrupted = true
    try {
      await this.#service.ensureBasin(
        basin.name,
        { ...basin.config, streamCipher: cipher },
        { uninterrupted },
      )
      await create()
    } finally {
      await this.#service.ensureBasin(basin.name, basin.config, { uninterrupted })
    }
  }
}

interface ImportedBasin {
  readonly name: string
  readonly config: BasinConfig
  readonly isWanted: boolean
  readonly isNew: boolean
}

function sameCounts(a: ExportCounts, b: ExportCounts): boolean {
  return a.basins === b.basins && a.streams === b.streams && a.records === b.records
}
