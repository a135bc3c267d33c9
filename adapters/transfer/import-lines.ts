import { sameConfig } from '../../src/core/provision.ts'
import { compareUtf8, utf8 } from '../../src/model/bytes.ts'
import type { BasinConfig } from '../../src/model/config.ts'
import { type ExportCounts, type ExportEntry, type ExportedStream, STREAM_PREFIX } from './export-entry.ts'
import { StreamImport } from './import-stream.ts'
import type { Line } from './lines.ts'
import { matchesName, type TransferFilter } from './name-filter.ts'
import { lineError, parseLine, startsWith } from './resume-point.ts'
import { type Service, type StreamPath, streamLabel } from './service.ts'
import { TransferError } from './transfer-error.ts'

export interface ImportOptions {
  readonly filter: TransferFilter
  /** Continues streams that already have records. */
  readonly resume: boolean
  /** Called after each chunk of lines, with the stream that they belong to. */
  readonly onProgress?: ((counts: ExportCounts, stream: string | undefined) => void) | undefined
  /** The time in milliseconds that decides whether a stream has expired. Now by default. */
  readonly now?: number | undefined
  /** Called for a condition that could not be verified, and for what is left out. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/**
 * Imports the lines of an export, one stream after the other. Resolves to the counts of what matched the
 * filter.
 *
 * @throws TransferError with the line number; of kind `incomplete` if the export is truncated.
 */
export async function importLines(
  input: AsyncIterable<readonly Line[]>,
  service: Service,
  options: ImportOptions,
): Promise<ExportCounts> {
  const importing = new Import(service, options)
  try {
    for await (const lines of input) {
      for (const line of lines) await importing.add(parseLine(line), line)
      importing.reportProgress()
    }
    return await importing.finish()
  } finally {
    importing.abandon()
  }
}

class Import {
  readonly #service: Service
  readonly #options: ImportOptions
  #isBegun = false
  #isComplete = false
  #basin: ImportedBasin | undefined
  #open:
    | { readonly stream: ExportedStream; readonly import: StreamImport | undefined; records: number }
    | undefined
  #lastStream: string | undefined
  /** Counts of the input, and of what matched the filter. */
  readonly #seen = { basins: 0, streams: 0, records: 0 }
  readonly #imported = { basins: 0, streams: 0, records: 0 }

  constructor(service: Service, options: ImportOptions) {
    this.#service = service
    this.#options = options
  }

  async add(entry: ExportEntry, line: Line): Promise<void> {
    try {
      this.#checkPlace(entry)
      await this.#import(entry)
    } catch (error) {
      if (!(error instanceof TransferError) || error.kind === 'aborted') throw error
      throw lineError(line, error.message)
    }
  }

  reportProgress(): void {
    const { basins, streams, records } = this.#imported
    const open = this.#open?.import === undefined ? 0 : this.#open.records
    this.#options.onProgress?.({ basins, streams, records: records + open }, this.#open?.stream.name)
  }

  async finish(): Promise<ExportCounts> {
    if (this.#isComplete) return this.#imported
    await this.#open?.import?.leave()
    const problem = this.#isBegun
      ? 'the input is truncated; its complete lines are imported. Continue with the complete input and `--resume`'
      : 'the input is empty'
    throw new TransferError(problem, { kind: 'incomplete' })
  }

  abandon(): void {
    this.#open?.import?.abandon()
  }

  #checkPlace(entry: ExportEntry): void {
    if (this.#isComplete) throw new TransferError('unexpected line after the end of the export')
    if ((entry.kind === 'header') === this.#isBegun)
      throw new TransferError('an export must begin with its header')
    const isOfStream = entry.kind === 'record' || entry.kind === 'stream-end'
    if (isOfStream !== (this.#open !== undefined)) {
      throw new TransferError(
        isOfStream ? 'unexpected line outside a stream' : 'the previous stream has no end',
      )
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
        if (!sameCounts(entry.counts, this.#seen))
          throw new TransferError('the export has other counts than its last line: parts are missing')
        this.#isComplete = true
    }
  }

  async #beginBasin(name: string, config: BasinConfig): Promise<void> {
    if (this.#basin !== undefined && compareUtf8(name, this.#basin.name) <= 0) {
      throw new TransferError('basins must be unique and in the order of their names')
    }
    this.#seen.basins++
    this.#lastStream = undefined
    const isWanted = matchesName(this.#options.filter.basins, name)
    this.#basin = { name, config, isWanted, isNew: isWanted && (await this.#ensureBasin(name, config)) }
    if (isWanted) this.#imported.basins++
  }

  /** Resolves to whether the basin is new. */
  async #ensureBasin(name: string, config: BasinConfig): Promise<boolean> {
    const existing = await this.#service.basinConfig(name)
    if (existing !== undefined && !this.#options.resume && !sameConfig(existing, config)) {
      throw new TransferError(
        `basin ${name} already exists with another configuration; \`--resume\` replaces it`,
      )
    }
    if (existing === undefined || !sameConfig(existing, config)) await this.#service.ensureBasin(name, config)
    return existing === undefined
  }

  async #beginStream(stream: ExportedStream): Promise<void> {
    const basin = this.#basin
    if (stream.basin !== basin?.name) throw new TransferError('a stream must follow its basin')
    if (this.#lastStream !== undefined && compareUtf8(stream.name, this.#lastStream) <= 0) {
      throw new TransferError('streams must be unique and in the order of their names')
    }
    this.#lastStream = stream.name
    const isWanted = basin.isWanted && matchesName(this.#options.filter.streams, stream.name)
    const isExpired = isWanted && this.#hasExpired(stream)
    if (isExpired) this.#options.onWarning?.(`${streamLabel(stream)} has expired and is left out`)
    const started =
      isWanted && !isExpired
        ? await StreamImport.begin(stream, {
            service: this.#service,
            withCipher: (create) => this.#withCipher(basin, stream, create),
            isNew: basin.isNew,
            resume: this.#options.resume,
            warn: (message) => this.#options.onWarning?.(message),
          })
        : undefined
    this.#open = { stream, import: started, records: 0 }
  }

  /** Whether the target would delete the stream at once. */
  #hasExpired({ expiry }: ExportedStream): boolean {
    const { now = Date.now() } = this.#options
    const keepsExpiry = this.#service.restoreStream !== undefined
    return keepsExpiry && expiry !== undefined && 'at' in expiry && expiry.at.getTime() <= now
  }

  async #endStream(name: string, records: number): Promise<void> {
    const open = this.#open!
    if (name !== open.stream.name) throw new TransferError('the line ends another stream')
    if (records !== open.records) {
      throw new TransferError(`${streamLabel(open.stream)} has ${open.records} records, not ${records}`)
    }
    await open.import?.finish()
    this.#open = undefined
    for (const counts of open.import ? [this.#seen, this.#imported] : [this.#seen]) {
      counts.streams++
      counts.records += records
    }
  }

  /** A new stream gets the cipher of its basin, whose configuration may have changed since. */
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
        `${streamLabel(stream)} is not encrypted, but its basin is. Importing it turns off encryption ` +
          'for all streams created in the basin at that moment; use `--resume` if no others are',
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

const STREAM_START = utf8(STREAM_PREFIX)

/**
 * Rejects with {@link TransferError} if a stream of the export already has records at the target, so that an
 * import fails before it writes anything. Does not read the input if the target has no basins.
 */
export async function assertUnoccupied(
  input: () => AsyncIterable<readonly Line[]>,
  service: Service,
  filter: TransferFilter,
): Promise<void> {
  const basinExists = new Map<string, boolean>()
  if ((await service.basins({ prefix: '' }).next()).done) return
  for await (const lines of input()) {
    for (const line of lines) {
      if (!startsWith(line.bytes, STREAM_START)) continue
      const entry = parseLine(line)
      if (entry.kind !== 'stream') continue
      const { basin, name } = entry.stream
      if (!matchesName(filter.basins, basin) || !matchesName(filter.streams, name)) continue
      // The streams of a basin are adjacent, so only the latest basin is kept.
      if (!basinExists.has(basin)) {
        basinExists.clear()
        basinExists.set(basin, (await service.basinConfig(basin)) !== undefined)
      }
      if (!basinExists.get(basin) || !(await hasRecords(service, entry.stream))) continue
      throw new TransferError(
        `line ${line.number}: ${streamLabel(entry.stream)} already has records; continue it with \`--resume\``,
      )
    }
  }
}

/** Reading a tail may create the stream, so only a listed one is read. */
async function hasRecords(service: Service, stream: StreamPath): Promise<boolean> {
  const found = await service.findStream(stream)
  return found !== undefined && ((await service.tail(found))?.seqNum ?? 0) > 0
}
