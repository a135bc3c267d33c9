import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { inProject } from './project.mjs'

/** What running an example leaves in its folder. */
const MADE = new Set(['dist', 'data', 'node_modules', 'package-lock.json'])

/** Copies the folders of the examples, which `headwater init` writes, with the version of this package. */
export async function writeExampleFolders(directory) {
  const { version } = JSON.parse(await readFile(inProject('package.json'), 'utf8'))
  const entries = await readdir(inProject('examples'), { withFileTypes: true })
  await rm(directory, { recursive: true, force: true })
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    const folder = join(directory, name)
    const filter = (path) => !MADE.has(basename(path))
    await cp(inProject('examples', name), folder, { recursive: true, filter })
    const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    manifest.dependencies.headwater = version
    await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  }
}
