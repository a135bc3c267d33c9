import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { describe, expect, it } from 'vitest'

const PROJECT = resolve(import.meta.dirname, '../..')
const { exports } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))

/** Entries for Node, by their names. */
const OF_NODE = ['./filesystem', './node', './postgres']
const ENTRIES = Object.keys(exports).filter((entry) => !OF_NODE.includes(entry) && entry !== './package.json')

/**
 * A bundle for browsers of all that the entry reaches, also by `import()`. Rejects when that asks for a
 * module that browsers do not have.
 */
async function bundle(entry: string): Promise<Metafile> {
  const { metafile } = await build({
    stdin: { contents: `export * from 'headwater${entry.slice(1)}'`, resolveDir: PROJECT },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    outdir: 'out',
    write: false,
    metafile: true,
    logLevel: 'silent',
    absWorkingDir: PROJECT,
  })
  return metafile
}

describe('the entries for browsers', () => {
  it('are all entries except those for Node', () => {
    expect(ENTRIES).toEqual(
      expect.arrayContaining([
        '.',
        './memory',
        './indexeddb',
        './http',
        './aegis-256',
        './testing',
        './conformance',
      ]),
    )
  })

  it.each(ENTRIES)('%s imports no module of Node', async (entry) => {
    const inputs = Object.values((await bundle(entry)).inputs)
    expect(inputs.length).toBeGreaterThan(0)
    const asked = inputs.flatMap(({ imports }) => imports.map(({ path }) => path)).filter(isBuiltin)
    expect(asked).toEqual([])
  })

  it.each(OF_NODE)('%s imports one, which the check detects', async (entry) => {
    await expect(bundle(entry)).rejects.toThrow('Could not resolve')
  })
})
