import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parseModule, readSources } from '../architecture/source-module.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LOADED_CODE = 'test/campaigns/loaded-code.ts'

it('campaigns load, before they begin, every module that an engine loads on first use', () => {
  const lazy = [...readSources(ROOT, ['src/api', 'src/core', 'src/engine'])]
    .filter(([, text]) => text.includes('import('))
    .flatMap(([path, text]) => parseModule(path, text).imports)
    .filter(({ isDynamic, target }) => isDynamic === true && target.startsWith('src/'))
    .map(({ target }) => target)
  const { imports } = parseModule(LOADED_CODE, readFileSync(`${ROOT}/${LOADED_CODE}`, 'utf8'))
  const loaded = new Set(imports.map(({ target }) => target))
  expect(lazy.length).toBeGreaterThan(0)
  expect(lazy.filter((target) => !loaded.has(target))).toEqual([])
})
