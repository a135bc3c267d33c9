import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

const PROJECT = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)

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
  await unpack(directory, join(modules, 'headwater'))
  const { dependencies } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), ...packages]) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(PROJECT, 'node_modules', name), join(modules, name), 'junction')
  }
  return { directory, remove: () => rm(directory, { recursive: true }) }
}

async function unpack(directory: string, target: string): Promise<void> {
  // On Windows npm is a script, which only a shell starts.
  const shell = process.platform === 'win32'
  const packing = await run('npm', ['pack', '--json', '--pack-destination', directory], {
    cwd: PROJECT,
    shell,
  })
  const [{ filename }] = JSON.parse(packing.stdout)
  await mkdir(target, { recursive: true })
  await run('tar', ['-xzf', join(directory, filename), '--strip-components', '1', '-C', target])
}
