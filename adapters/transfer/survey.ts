import { listRange, matchesName, type TransferFilter } from './name-filter.ts'
import type { Service } from './service.ts'

/** How many positions the streams have together that pass the filter: what an export has before it. */
export async function countPositions(service: Service, { basins, streams }: TransferFilter): Promise<number> {
  let positions = 0
  for await (const basin of service.basins(listRange(basins))) {
    if (!matchesName(basins, basin)) continue
    for await (const stream of service.streams(basin, listRange(streams))) {
      if (matchesName(streams, stream.name)) positions += (await service.tail(stream))?.seqNum ?? 0
    }
  }
  return positions
}
