import { transform } from 'esbuild'
import { expect, it } from 'vitest'
import { APPS } from '../frameworks/apps.mjs'
import { recipeOf, recipes } from '../frameworks/harness/recipes.mjs'

const shown = await recipes()
const scripts = shown.filter(([, path]) => /\.jsx?$/.test(path))

it('every framework with a recipe is checked, and every app that is checked has a recipe', () => {
  expect([...new Set(shown.map(([app]) => app))].sort()).toEqual(Object.keys(APPS).sort())
})

it('docs/ai-chat.md lists the versions with which it is checked', () => {
  const [, , manifest] = shown.find(([app, path]) => app === 'next-chat' && path === 'package.json')!
  const { headwater: _, ...dependencies } = JSON.parse(manifest!).dependencies
  const listed = Object.entries(dependencies).map(([name, version]) => `${name}@${version}`)
  expect(listed.sort()).toEqual([...APPS['next-chat']!.packages!].sort())
})

it.each(scripts)('%s/%s is a module', async (_app, _path, code) => {
  await expect(transform(code, { loader: 'jsx', format: 'esm' })).resolves.toMatchObject({ warnings: [] })
})

it.each(Object.entries(APPS))(
  'the recipe of %s has the lines that its check changes',
  async (app, { edits }) => {
    await expect(recipeOf(app, edits)).resolves.toBeInstanceOf(Map)
  },
)
