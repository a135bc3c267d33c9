// @module-tag slow

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import ts from 'typescript'
import { expect, it, onTestFinished } from 'vitest'
import { PROJECT, pages } from './examples.ts'
import { errorsOf, samplesOfDeclarations } from './samples.ts'

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

interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  /** The name of a file, or `part` for lines of a program. */
  readonly name: string
  readonly code: string
}

const blocks = (await pages())
  .flatMap((page): Block[] => {
    const text = readFileSync(join(PROJECT, page), 'utf8')
    return [...text.matchAll(BLOCK)].map(({ index, 1: language, 2: name, 3: code }) => ({
      page,
      line: text.slice(0, index).split('\n').length,
      language: language!,
      name: name!,
      code: code!,
    }))
  })
  .filter(({ page, name }) => !isOfApp(page, name))

const MISTAKE = { at: 'a mistake', language: 'ts', code: `await stream.append(42)` }

it('code in docstrings, and parts of programs in the pages, compile with the built package', () => {
  const docstrings = samplesOfDeclarations()
  const parts = blocks
    .filter(({ name }) => name === 'part')
    .map(({ page, line, language, code }) => ({
      at: `${page}:${line}`,
      language,
      code: withSurroundings(code),
    }))
  expect(docstrings.length).toBeGreaterThan(20)
  expect(parts.length).toBeGreaterThan(5)
  const samples = [MISTAKE, ...docstrings, ...parts]
  const errors = errorsOf(samples).map((messages, i) => ({ at: samples[i]!.at, messages }))
  expect(errors.filter(({ messages }) => messages.length > 0)).toEqual([
    { at: MISTAKE.at, messages: [expect.stringContaining("'number'")] },
  ])
})

it('the files in the pages compile against the built package', () => {
  // Inside the project, so that `headwater` is the package itself as it was built.
  const directory = mkdtempSync(join(PROJECT, 'dist', 'guide-code-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const files = blocks
    .filter(({ name }) => name !== 'part' && name !== OF_A_WORKER)
    .map((block) => ({ block, path: join(directory, basename(block.page, '.md'), block.name) }))
  expect(files.length).toBeGreaterThan(5)
  for (const { block, path } of files) {
    ts.sys.createDirectory(join(directory, basename(block.page, '.md')))
    writeFileSync(path, withJsx(block))
  }
  const cloudflare = join(directory, 'cloudflare.d.ts')
  writeFileSync(cloudflare, CLOUDFLARE)
  const program = ts.createProgram([...files.map(({ path }) => path), cloudflare], {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    jsx: ts.JsxEmit.Preserve,
    types: ['node'],
    strict: true,
    allowJs: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  })
  const errors = files.flatMap(({ block, path }) => {
    const file = program.getSourceFile(path)
    const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
    return diagnostics.map(({ messageText }) => [
      `${block.page}: ${block.name}`,
      ts.flattenDiagnosticMessageText(messageText, '\n'),
    ])
  })
  expect(errors).toEqual([])
})

/** A part with the surroundings that it uses and does not declare itself. */
function withSurroundings(code: string): string {
  const needed = Object.entries(SURROUNDINGS).filter(
    ([name]) => new RegExp(`\\b${name}\\b`).test(code) && !code.includes(`const ${name} =`),
  )
  return [...needed.map(([, declaration]) => declaration), code].join('\n')
}

/** Each framework has types of its own for the elements of JSX. */
function withJsx({ language, code }: Block): string {
  if (language !== 'tsx') return code
  const source = code.includes("from 'solid-js'") ? 'solid-js' : 'react'
  return `/** @jsxImportSource ${source} */\n${code}`
}
