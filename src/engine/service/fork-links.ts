import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import { type StreamDocument, streamKey } from '../../storage/documents.ts'
import type { Versioned } from './catalog.ts'
import { putStream } from './stream-creator.ts'

/** Deletes the document of a stream. */
export function deletionOf({ value: { basin, name }, version }: Versioned<StreamDocument>): CatalogChange {
  return { kind: 'delete', collection: 'streams', key: streamKey(basin, name), expect: version }
}

/** Counts one more fork of a stream. */
export function addFork({ value, version }: Versioned<StreamDocument>): CatalogChange {
  return putStream({ ...value, forks: (value.forks ?? 0) + 1 }, version)
}

/**
 * Counts one fork less of the stream that a deleted stream was a copy of. Frees the name of a deleted stream
 * with its last fork, and so on with the stream that it was a copy of.
 */
export async function releaseSource(
  session: Pick<StorageSession, 'get'>,
  { basin, forkOf }: StreamDocument,
): Promise<CatalogChange[]> {
  const changes: CatalogChange[] = []
  for (let link = forkOf; link !== undefined; ) {
    const document = await session.get('streams', streamKey(basin, link.stream))
    const source = document?.value as unknown as StreamDocument | undefined
    if (document === undefined || source?.logId !== link.logId) break
    const forks = (source.forks ?? 1) - 1
    if (forks > 0 || source.deletedAt === undefined) {
      changes.push(putStream({ ...source, forks }, document.version))
      break
    }
    changes.push(deletionOf({ value: source, version: document.version }))
    link = source.forkOf
  }
  return changes
}
