import { formatVersionOf, HEADER_START_BYTES } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'

/**
 * Returns the format versions of files, ascending: a directory that an earlier release has written gets files
 * of the present version as it changes. Leaves out what has no header.
 */
export async function formatVersionsOf(files: Files, names: Iterable<string>): Promise<number[]> {
  const versions = new Set<number>()
  for (const name of names) {
    const version = await versionOf(files, name)
    if (version !== undefined) versions.add(version)
  }
  return [...versions].sort((a, b) => a - b)
}

/** Resolves to undefined for a damaged file, which is reported where it is checked. */
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
