import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PROJECT } from './examples.ts'

const APPS = join(PROJECT, 'test', 'frameworks')
/** Marks where an app has more lines than the recipe. */
const ELLIPSIS = /^(\/\/|#|<!--) …/

interface Recipe {
  /** The files of the apps that contain it. */
  readonly files: readonly string[]
  readonly lines: readonly string[]
}

const page = readFileSync(join(PROJECT, 'docs/frameworks.md'), 'utf8')
const recipes: Recipe[] = [...page.matchAll(/^```\w+ (\S.*)\n([\s\S]*?)^```$/gm)].map(([, files, code]) => ({
  files: files!.split(' '),
  lines: linesOf(code!),
}))
const apps = readdirSync(APPS).filter((name) => existsSync(join(APPS, name, 'framework.mjs')))

describe.each(recipes)('the recipe of $files', ({ files, lines }) => {
  it.each(files)('consists of lines of %s, in their order', (file) => {
    const remaining = linesOf(readFileSync(join(APPS, file), 'utf8'))[Symbol.iterator]()
    const missing = lines.filter((line) => !ELLIPSIS.test(line) && !advanceTo(remaining, line))
    expect(missing).toEqual([])
  })
})

describe('the guide to AI chats', () => {
  const app = join(APPS, 'next-chat')
  const guide = readFileSync(join(PROJECT, 'docs/ai-chat.md'), 'utf8')
  const shown = [...guide.matchAll(/^```jsx? (\S+)\n([\s\S]*?)^```$/gm)]

  it.each(shown.map(([, file, code]) => [file!, code!]))('shows %s as it is', (file, code) => {
    expect(code).toBe(readFileSync(join(app, file), 'utf8'))
  })

  it('shows every file of the app', () => {
    const files = readdirSync(app, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.js'),
    )
    expect(shown.map(([, file]) => file).sort()).toEqual(files.sort())
  })
})

it('every app has a recipe', () => {
  const withRecipe = new Set(recipes.flatMap(({ files }) => files.map((file) => file.split('/')[0]!)))
  expect([...withRecipe, 'next-chat'].sort()).toEqual(apps.sort())
})

function linesOf(code: string): string[] {
  return code
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function advanceTo(lines: Iterator<string>, expected: string): boolean {
  for (;;) {
    const { done, value } = lines.next()
    if (done) return false
    if (value === expected) return true
  }
}
