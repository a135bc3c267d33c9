import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEachFile } from '../../support/after-file.ts'

const directories: string[] = []

/** A new directory, removed after the tests of the file. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-filesystem-'))
  directories.push(directory)
  return directory
}

afterEachFile(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
})
