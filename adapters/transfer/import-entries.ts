import { sameConfig } from '../../src/core/provision.ts'
import type { BasinConfig } from '../../src/model/config.ts'
import type { ExportCounts, ExportEntry, ExportedStream } from './export-entry.ts'
import { type ImportOptions, StreamImport } from './import-stream.ts'
import { matchesName } from './name-filter.ts'
import { type Service, streamLabel } from './service.ts'
import { TransferError } from './transfer-error.ts'

/**
 * Imports the entries of an export, one stream after the other. Resolves to the counts of what matched the
 * filter; of records, those that were appended.
 *
 * @throws TransferError of kind `incomplete` if the export is truncated.
 */
export async function importEntries(
  batches: AsyncIterable<readonly ExportEntry[]>,
  service: Service,
  options: ImportOptions,
): Promise<ExportCounts> {
  const importing = new Import(service, options)
  for await (const entries of batches) {
    for (const entry of entries) await importing.add(entry)
    importing.reportProgress()
  }
  return importing.finish()
}

class Import {
  readonly #service: Service
  readonly #options: ImportOptions
  #isBegun = false
  #isComplete = false
  /** Whether the basin of the next streams is imported, and is new. */
  #basin = { isWanted: false, isNew: false }
  /** Undefined for a stream that is left out. */
  #stream: StreamImport | undefined
  readonly #counts = { basins: 0, streams: 0, records: 0 }

  constructor(service: Service, options: ImportOptions) {
    this.#service = service
    this.#options = options
  }

  async add(entry: ExportEntry): Promise<void> {
    this.#isBegun = true
    switch (entry.kind) {
      case 'header':
        return
      case 'basin':
        return this.#beginBasin(entry.name, entry.config)
      case 'stream':
        return this.#beginStream(entry.stream)
      case 'record':
        return this.#stream?.add(entry.record)
      case 'stream-end':
        return this.#endStream()
      case 'end':
        this.#isComplete = true
    }
  }

  reportProgress(): void {
    const { basins, streams, records } = this.#counts
    const counts = { basins, streams, records: records + (this.#stream?.appended ?? 0) }
    this.#options.onProgress?.(counts, this.#stream?.name)
  }

  async finish(): Promise<ExportCounts> {
    if (this.#isComplete) return this.#counts
    await this.#stream?.leave()
    const problem = this.#isBegun
      ? 'the input is truncated; its complete lines are imported. Continue with the complete input and `--resume`'
      : 'the input is empty'
    throw new TransferError(problem, { kind: 'incomplete' })
  }

  async #beginBasin(name: string, config: BasinConfig): Promise<void> {
    const isWanted = matchesName(this.#options.filter.basins, name)
    this.#basin = { isWanted, isNew: isWanted && (await this.#ensureBasin(name, config)) }
    if (isWanted) this.#counts.basins++
  }

  /** Resolves to whether the basin is new. */
  async #ensureBasin(name: string, config: BasinConfig): Promise<boolean> {
    const existing = await this.#service.basinConfig(name)
    const isSame = existing !== undefined && sameConfig(existing, config)
    if (existing !== undefined && !isSame && !this.#options.resume) {
      throw new TransferError(
        `basin ${name} already exists with another configuration; \`--resume\` replaces it`,
      )
    }
    if (!isSame) await this.#service.ensureBasin(name, config)
    return existing === undefined
  }

  async #beginStream(stream: ExportedStream): Promise<void> {
    const { filter, now = Date.now(), onWarning } = this.#options
    this.#stream = undefined
    if (!this.#basin.isWanted || !matchesName(filter.streams, stream.name)) return
    const { expiry } = stream
    // The target would delete it at once.
    if (this.#service.canRestore && expiry !== undefined && 'at' in expiry && expiry.at.getTime() <= now) {
      onWarning?.(`${streamLabel(stream)} has expired and is left out`)
      return
    }
    this.#stream = await StreamImport.begin(stream, this.#basin.isNew, this.#service, this.#options)
  }

  async #endStream(): Promise<void> {
    if (this.#stream === undefined) return
    await this.#stream.finish()
    this.#counts.streams++
    this.#counts.records += this.#stream.appended
    this.#stream = undefined
  }
}
