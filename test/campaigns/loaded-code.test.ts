import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parseModule, readSources } from '../architecture/source-module.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LOADED_CODE = 'test/campaigns/loaded-code.ts'

it('campaigns load, before they begin, every module that the engine loads on first use', () => {
  const lazy = [...readSources(ROOT, ['src/api', 'src/core', 'src/engine'])]
    .flatMap(([path, text]) => parseModule(path, text).imports)
    .filter(({ isDynamic, target }) => isDynamic === true && target.startsWith('src/'))
    .map(({ target }) => target)
  const text = readSources(ROOT, ['test/campaigns']).get(LOADED_CODE) ?? ''
  const loaded = parseModule(LOADED_CODE, text).imports.map(({ target }) => target)
  expect(loaded).toEqual([...new Set(lazy)].sort())
})
