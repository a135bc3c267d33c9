import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..', '..')
const DOCS = join(ROOT, 'docs')
const LINK = /\[([^\]]+)\]\((\.\.\/[^)#]+\.ts)\)/g

const page = await readFile(join(ROOT, 'docs/guarantees.md'), 'utf8')
const links = [...page.matchAll(LINK)].map(([, title, path]) => [title!, path!] as const)

test.each(links)('"%s" is the name of a test in %s', async (title, path) => {
  const code = await readFile(join(DOCS, path), 'utf8')
  expect(path).toMatch(/\.test\.ts$|^\.\.\/adapters\/conformance\//)
  // A name that is made of a template is linked by a part of it.
  const named = code.split('\n').filter((line) => /['`]/.test(line.split(title)[0]!) && line.includes(title))
  expect(named).not.toEqual([])
})

test('every promise names a test that checks it', () => {
  const tables = page.split('| promise | tests |\n|---|---|\n').slice(1)
  const rows = tables.flatMap((table) => table.split('\n\n')[0]!.trim().split('\n'))
  expect(rows.length).toBeGreaterThan(30)
  for (const row of rows) expect(row).toMatch(LINK)
})
