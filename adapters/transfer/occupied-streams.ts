import { utf8 } from '../../src/model/bytes.ts'
import { STREAM_PREFIX } from './export-entry.ts'
import type { Line } from './lines.ts'
import { matchesName, type TransferFilter } from './name-filter.ts'
import { entryOf, startsWith } from './resume-point.ts'
import { aboutStream, type Service, type StreamRef } from './service.ts'
import { TransferError } from './transfer-error.ts'

const STREAM_START = utf8(STREAM_PREFIX)

/**
 * Looks through an export that can be read twice for streams that have records at the target already, so that an import fails before it has written
 * anything. A target without basins has none: then nothing is read.
 */
export async function refuseOccupied(
  input: () => AsyncIterable<readonly Line[]>,
  service: Service,
  filter: TransferFilter,
): Promise<void> {
  const there = new Map<string, boolean>()
  if ((await service.basins({ prefix: '' }).next()).done) return
  for await (const lines of input()) {
    for (const line of lines) {
      if (!startsWith(line.bytes, STREAM_START)) continue
      const entry = entryOf(line)
      if (entry.kind !== 'stream') continue
      const { basin, name } = entry.stream
      if (!matchesName(filter.basins, basin) || !matchesName(filter.streams, name)) continue
      // Streams of a basin stand together: one is enough to remember.
      if (!there.has(basin)) {
        there.clear()
        there.set(basin, (await service.basinConfig(basin)) !== undefined)
      }
      if (!there.get(basin) || !(await hasRecords(service, entry.stream))) continue
      throw new TransferError(
        `line ${line.number}: ${aboutStream(entry.stream)} exists and has records: --resume goes on with it`,
      )
    }
  }
}

/** Where a look at a stream makes it, only one that is listed is looked at. */
async function hasRecords(service: Service, stream: StreamRef): Promise<boolean> {
  const found = await service.findStream(stream)
  return found !== undefined && ((await service.tail(found))?.seqNum ?? 0) > 0
}
