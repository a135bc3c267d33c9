import { sameConfig } from '../../src/core/provision.ts'
import type { BasinConfig } from '../../src/model/config.ts'
import type { ExportCounts, ExportEntry, ExportedStream } from './export-entry.ts'
import { type ImportOptions, StreamImport } from './import-stream.ts'
import { matchesName, type Service, streamLabel, TransferError } from './service.ts'

/**
 * Imports the entries of an export, one stream after the other. Resolves to the counts of what matched the
 * filter; of records, those that were appended.
 *
 * @throws TransferError, also if the export is truncated: its complete lines are imported.
 */
export async function importEntries(
  batches: AsyncIterable<readonly ExportEntry[]>,
  service: Service,
  options: ImportOptions,
): Promise<ExportCounts> {
  const { filter, resume, now = Date.now(), onProgress, onWarning } = options
  const counts = { basins: 0, streams: 0, records: 0 }
  /** Whether the basin of the next streams is imported, and is new. */
  let basin = { isWanted: false, isNew: false }
  /** Undefined for a stream that is left out. */
  let stream: StreamImport | undefined
  let isBegun = false
  let isComplete = false

  /** Resolves to whether the basin is new. */
  async function ensureBasin(name: string, config: BasinConfig): Promise<boolean> {
    const existing = await service.basinConfig(name)
    const isSame = existing !== undefined && sameConfig(existing, config)
    if (existing !== undefined && !isSame && !resume) {
      throw new TransferError(
        `basin ${name} already exists with another configuration; \`--resume\` replaces it`,
      )
    }
    if (!isSame) await service.ensureBasin(name, config)
    return existing === undefined
  }

  async function begin(exported: ExportedStream): Promise<StreamImport | undefined> {
    if (!basin.isWanted || !matchesName(filter.streams, exported.name)) return undefined
    const { expiry } = exported
    // The target would delete it at once.
    if (service.canRestore && expiry !== undefined && 'at' in expiry && expiry.at.getTime() <= now) {
      onWarning?.(`${streamLabel(exported)} has expired and is left out`)
      return undefined
    }
    return StreamImport.begin(exported, basin.isNew, service, options)
  }

  async function add(entry: ExportEntry): Promise<void> {
    switch (entry.kind) {
      case 'header':
        return
      case 'basin': {
        const isWanted = matchesName(filter.basins, entry.name)
        basin = { isWanted, isNew: isWanted && (await ensureBasin(entry.name, entry.config)) }
        if (isWanted) counts.basins++
        return
      }
      case 'stream':
        stream = await begin(entry.stream)
        return
      case 'record':
        return stream?.add(entry.record)
      case 'stream-end':
        if (stream === undefined) return
        await stream.finish()
        counts.streams++
        counts.records += stream.appended
        stream = undefined
        return
      case 'end':
        isComplete = true
    }
  }

  for await (const entries of batches) {
    isBegun = true
    for (const entry of entries) await add(entry)
    onProgress?.({ ...counts, records: counts.records + (stream?.appended ?? 0) }, stream?.name)
  }
  if (isComplete) return counts
  await stream?.stop()
  const problem = isBegun
    ? 'the input is truncated; its complete lines are imported. Continue with the complete input and `--resume`'
    : 'the input is empty'
  throw new TransferError(problem)
}
