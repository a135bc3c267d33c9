import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT, repositoryFiles } from './examples.ts'

const COLUMNS = 110
/** Comments that address a tool and must be one line. */
const DIRECTIVE = /^\s*\/\/ (biome-ignore|@ts-)/

const files = repositoryFiles().filter((path) => !path.includes('/gen/'))
const documents = files.filter((path) => path.endsWith('.md') && path !== 'THIRD-PARTY-NOTICES.md')
const code = files.filter((path) => /^(src|adapters|test|scripts|bench)\/.*\.(tsx?|mjs|js)$/.test(path))

test('prose wraps at 110 columns', () => {
  expect(documents.length).toBeGreaterThan(20)
  expect(documents.flatMap((path) => longLines(path, isProse))).toEqual([])
})

test('comments wrap at 110 columns', () => {
  expect(code.length).toBeGreaterThan(500)
  expect(code.flatMap((path) => longLines(path, isComment))).toEqual([])
})

test.each([
  ['a table row', `| ${'word '.repeat(23)}|`],
  ['an image', `![${'word '.repeat(23)}](image.png)`],
  ['a link without a space', `- [Title](https://example.com/${'path/'.repeat(23)})`],
])('%s may be wider', (_, line) => {
  expect(isProse(line)).toBe(false)
  expect(isProse('word '.repeat(23))).toBe(true)
})

function longLines(path: string, matches: (line: string) => boolean): string[] {
  const text = readFileSync(join(PROJECT, path), 'utf8')
  // Blocks of code keep their lines, so that the numbers of those after them hold.
  const lines = (path.endsWith('.md') ? text.replace(/^ *```[\s\S]*?^ *```$/gm, blank) : text).split('\n')
  return lines.flatMap((line, index) =>
    line.length > COLUMNS && matches(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
  )
}

function blank(block: string): string {
  return block.replace(/.+/g, '')
}

/** Whether a line of Markdown can be wrapped: not a table row, an image, or a single long word. */
function isProse(line: string): boolean {
  return !/^\s*(\||!\[)/.test(line) && /\S \S/.test(line.slice(0, COLUMNS).replace(/^\s*([-*>]|\d+\.) /, ''))
}

function isComment(line: string): boolean {
  return /^\s*(\/\/|\/?\*)/.test(line) && !DIRECTIVE.test(line)
}
