import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT, section } from './examples.ts'

test('the README has at most 155 lines', async () => {
  expect((await readFile(join(PROJECT, 'README.md'), 'utf8')).split('\n').length).toBeLessThanOrEqual(156)
})

test('the README states the budgets of bundles that npm run check:size enforces', async () => {
  const script = await readFile(join(PROJECT, 'scripts/check-size.mjs'), 'utf8')
  const stated = [...(await section('README.md', 'Bundle sizes')).matchAll(/\| ([\d.]+) KiB \|$/gm)]
  const enforced = [...script.matchAll(/^ {4}KiB: ([\d.]+),$/gm)]
  expect(stated.map(([, KiB]) => KiB)).toEqual(enforced.map(([, KiB]) => KiB))
  expect(stated).toHaveLength(12)
})
