import { mkdirSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** A program that Node runs. */
export interface Program {
  readonly path: string
  remove(): Promise<void>
}

/** Packages are not bundled: they must be found from where the program lies. */
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url))

export async function programOf(source: URL): Promise<Program> {
  mkdirSync(CACHE, { recursive: true })
  const directory = mkdtempSync(join(CACHE, 'fuzz-'))
  const path = join(directory, 'program.mjs')
  await build({
    entryPoints: [fileURLToPath(source)],
    outfile: path,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    sourcemap: 'inline',
  })
  return { path, remove: () => rm(directory, { recursive: true }) }
}
