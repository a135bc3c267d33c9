import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { pack } from '../../scripts/project.mjs'

const PROJECT = resolve(import.meta.dirname, '../..')

export interface InstalledApp {
  readonly directory: string
  remove(): Promise<void>
}

/**
 * An app in a directory of its own, with the package as it would be published below its `node_modules`, and
 * further packages.
 */
export async function installApp(packages: readonly string[] = []): Promise<InstalledApp> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-app-'))
  const modules = join(directory, 'node_modules')
  await cp(join(import.meta.dirname, 'app'), join(directory, 'src'), { recursive: true })
  await writeFile(join(directory, 'package.json'), JSON.stringify({ type: 'module' }))
  const tarball = await pack(directory)
  await mkdir(join(modules, 'headwater'), { recursive: true })
  await promisify(execFile)('tar', [
    '-xzf',
    tarball,
    '--strip-components',
    '1',
    '-C',
    join(modules, 'headwater'),
  ])
  const { dependencies } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), ...packages]) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(PROJECT, 'node_modules', name), join(modules, name), 'junction')
  }
  return { directory, remove: () => rm(directory, { recursive: true }) }
}
