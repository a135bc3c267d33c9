import { cp, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEachFile } from '../../support/after-file.ts'

const directories: string[] = []

/** The real path of a new directory, removed after the tests of the file. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'headwater-filesystem-')))
  directories.push(directory)
  return directory
}

afterEachFile(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
})

/**
 * Copies the files of a directory that is in use, as the end of the process would leave them. Resolves to the
 * path of the copy.
 */
export async function copyOfDirectory(directory: string): Promise<string> {
  const copy = await temporaryDirectory()
  const isData = (path: string) => !/^lock/.test(basename(path))
  await cp(directory, copy, { recursive: true, filter: isData })
  return copy
}
