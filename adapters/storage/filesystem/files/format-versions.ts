import { formatVersionOf, HEADER_START_BYTES } from './file-header.ts'
import type { Files } from './files.ts'

/** Returns the format version of each file. Leaves out what has no header. */
export async function formatVersions(
  files: Files,
  names: Iterable<string>,
): Promise<ReadonlyMap<string, number>> {
  const versions = new Map<string, number>()
  for (const name of names) {
    const version = await versionOf(files, name)
    if (version !== undefined) versions.set(name, version)
  }
  return versions
}

/**
 * Returns the different versions, ascending: a directory that an earlier release has written gets files of
 * the present version as it changes.
 */
export function distinctVersions(versions: ReadonlyMap<string, number>): number[] {
  return [...new Set(versions.values())].sort((a, b) => a - b)
}

/** Resolves to undefined for a damaged file, which is reported where it is read. */
async function versionOf(files: Files, name: string): Promise<number | undefined> {
  const file = await files.open(name, 'read').catch(() => undefined)
  if (file === undefined) return undefined
  try {
    const start = new Uint8Array(HEADER_START_BYTES)
    return (await file.read(start, 0)) === start.length ? formatVersionOf(start) : undefined
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}
