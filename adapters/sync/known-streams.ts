import type { Basin } from '../../src/api/basin.ts'
import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { syncedNameProblem } from '../../src/sync/synced-names.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import { LocalCopy } from './local-copy.ts'

const PAGE = 1_000

/** Lists the names below a prefix with the times of their creation, at most a number of them. */
export async function listNames(
  basin: Basin,
  prefix: string,
  namesMax: number,
  limit?: ConnectionLimit,
): Promise<{ readonly names: ReadonlyMap<string, number>; readonly isWhole: boolean }> {
  const names = new Map<string, number>()
  for (let startAfter: string | undefined; ; ) {
    const list = () => basin.listStreams({ prefix, startAfter, limit: PAGE })
    const { items, hasMore } = await (limit === undefined ? list() : limit.run(list))
    for (const { name, createdAt, deletedAt } of items) {
      const isSynced = deletedAt === null && syncedNameProblem(name, prefix) === undefined
      if (isSynced && names.size < namesMax) names.set(name, createdAt.getTime())
    }
    const last = items.at(-1)?.name
    // Otherwise a server that repeats a page would be asked forever.
    if (!hasMore || last === undefined || last === startAfter) return { names, isWhole: true }
    if (names.size >= namesMax) return { names, isWhole: false }
    startAfter = last
  }
}

/** Lists the names of a local basin, which is empty as long as it does not exist. */
export async function localNames(local: Basin, prefix: string): Promise<ReadonlyMap<string, number>> {
  try {
    return (await listNames(local, prefix, Number.POSITIVE_INFINITY)).names
  } catch (error) {
    if (isStreamMissing(error)) return new Map()
    throw error
  }
}

/** Resolves to whether a stream is a copy without records. */
export async function isEmptyCopy(stream: Stream): Promise<boolean> {
  try {
    await new LocalCopy(stream).ensure()
    return (await stream.checkTail()).seqNum === 0
  } catch {
    return false
  }
}
