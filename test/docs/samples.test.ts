// @module-tag slow

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { PROJECT, pages } from './examples.ts'
import { completed, errorsOf, type Sample, samplesOfDeclarations } from './samples.ts'

const BLOCK = /^```(tsx?|js) ([\w./[\]-]+)\n([\s\S]*?)^```$/gm
/** Whether a block is a file of an app that has tests of its own: `test/frameworks`. */
const isOfApp = (page: string, name: string) => page === 'docs/ai-chat.md' || name.includes('/')
/** `in-the-browser.test.ts` runs it. Its types are not those of a page. */
const OF_A_WORKER = 'service-worker.ts'

/** What the parts of programs use beside what docstrings use. */
const SURROUNDINGS: Readonly<Record<string, string>> = {
  remote: `declare const remote: import('headwater').Headwater`,
  orders: `declare const orders: import('headwater').JsonStream<{ readonly goods: string }>`,
  user: 'declare const user: { readonly id: string }',
  rowOf: 'declare function rowOf(record: object): unknown',
  showList: 'declare function showList(rows: readonly unknown[]): void',
  ask: 'declare function ask(question: string): Promise<boolean>',
  sql: `declare const sql: Query & { begin(run: (query: Query) => Promise<void>): Promise<void> }
type Query = (parts: TemplateStringsArray, ...values: unknown[]) => Promise<unknown>`,
  nextPosition: 'declare function nextPosition(query: object): Promise<number>',
}

const CLOUDFLARE = `
declare module 'cloudflare:workers' {
  export class DurableObject {
    protected ctx: { readonly storage: import('headwater/durable-object').ObjectStorage }
  }
}`

interface Block extends Sample {
  /** The name of a file, or `part` for lines of a program. */
  readonly name: string
}

const blocks = (await pages()).flatMap((page): Block[] => {
  const text = readFileSync(join(PROJECT, page), 'utf8')
  return [...text.matchAll(BLOCK)].flatMap(([, language, name, code]) =>
    isOfApp(page, name!)
      ? []
      : { at: name === 'part' ? page : `${page}: ${name}`, language: language!, name: name!, code: code! },
  )
})

const MISTAKE = { at: 'a mistake', language: 'ts', code: `await stream.append(42)` }

it('code in docstrings, and parts of programs in the pages, compile with the built package', () => {
  const docstrings = samplesOfDeclarations()
  const parts = blocks.filter(({ name }) => name === 'part')
  expect(docstrings.length).toBeGreaterThan(20)
  expect(parts.length).toBeGreaterThan(5)
  const samples = [MISTAKE, ...docstrings, ...parts].map((sample) => completed(sample, SURROUNDINGS))
  expect(errorsOf(samples)).toEqual([{ at: MISTAKE.at, message: expect.stringContaining("'number'") }])
})

it('the files in the pages compile against the built package', () => {
  const files = blocks.filter(({ name }) => name !== 'part' && name !== OF_A_WORKER)
  expect(files.length).toBeGreaterThan(5)
  expect(errorsOf(files, CLOUDFLARE)).toEqual([])
})
