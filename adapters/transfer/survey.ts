import { listRange, matchesName, type TransferFilter } from './name-filter.ts'
import type { Service } from './service.ts'
import { isGone } from './transfer-error.ts'

/** How many positions the streams have together that pass the filter: what an export has before it. What is deleted meanwhile does not matter. */
export async function countPositions(service: Service, filter: TransferFilter): Promise<number> {
  let positions = 0
  for await (const basin of service.basins(listRange(filter.basins))) {
    if (!matchesName(filter.basins, basin)) continue
    try {
      for await (const count of countsOf(service, basin, filter)) positions += count
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return positions
}

async function* countsOf(
  service: Service,
  basin: string,
  { streams }: TransferFilter,
): AsyncGenerator<number> {
  const config = await service.basinConfig(basin)
  if (config === undefined) return
  for await (const stream of service.streams(basin, listRange(streams))) {
    if (!matchesName(streams, stream.name)) continue
    // A look at its tail would make it anew, if it was deleted since it was listed.
    if (config.createStreamOnRead && (await service.findStream(stream)) === undefined) continue
    yield (await service.tail(stream))?.seqNum ?? 0
  }
}
