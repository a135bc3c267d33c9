import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import ts from 'typescript'
import { onTestFinished } from 'vitest'
import { PROJECT } from './examples.ts'

/** Code of a docstring or a page. */
export interface Sample {
  /** The file and the line. */
  readonly at: string
  readonly code: string
  /** `ts`, `tsx` or `js`. */
  readonly language: string
}

/**
 * What samples use without declaring it. Whatever the package exports needs no import in a sample either.
 */
const CONTEXT: Readonly<Record<string, string>> = {
  hw: `declare const hw: import('headwater').Engine`,
  basin: `declare const basin: import('headwater').Basin`,
  stream: `declare const stream: import('headwater').Stream`,
  copy: `declare const copy: import('headwater/sync').Mirror`,
  server: `declare const server: import('headwater').Headwater`,
  box: `declare const box: import('headwater/sync').Outbox`,
  chat: `declare const chat: import('headwater/sync').SyncedStream`,
  rooms: `declare const rooms: import('headwater/sync').SyncedBasin`,
  todo: `declare const todo: import('headwater/sync').SyncedStream`,
  rows: `declare const rows: unknown[]`,
  storage: `declare const storage: import('headwater').Storage`,
  handler: `declare const handler: (request: Request) => Promise<Response>`,
  // Of a library for ciphers.
  aes: `declare const aes: {
    isSupported: boolean
    encrypt(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, data: Uint8Array): Uint8Array
    decrypt(key: Uint8Array, nonce: Uint8Array, ciphertext: Uint8Array, data: Uint8Array): Uint8Array
  }`,
  // Of a Durable Object.
  ctx: `declare const ctx: { readonly storage: import('headwater/durable-object').ObjectStorage }`,
  createServer: `import { createServer } from 'node:http'`,
  // Of Express.
  app: `declare const app: { use(path: string, handler: import('headwater/node').NodeHandler): void }`,
  // Of the author of a storage, and of a test runner.
  manifest: `declare const manifest: import('headwater/storage').StorageManifest`,
  make: `declare const make: import('headwater/conformance').ConformanceOptions['make']`,
  session: `declare const session: Required<import('headwater/storage').StorageSession>`,
  context: `declare const context: import('headwater/storage').StorageContext`,
  request: `declare const request: import('headwater/storage').AppendRequest`,
  requests: `declare const requests: import('headwater/storage').AppendRequest[]`,
  block: `declare const block: import('headwater/storage').StoredBlock`,
  head: `declare const head: import('headwater/storage').Head`,
  headBefore: `declare const headBefore: import('headwater/storage').Head`,
  versions: `declare const versions: import('headwater/storage').DocumentVersions`,
  heads: `declare const heads: import('headwater/storage').LogHeads`,
  database: `declare const database: {
    isClosed: boolean
    query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>
    insert(requests: readonly unknown[]): Promise<void>
    load(summary: object): Promise<Uint8Array>
    reuse(data: Uint8Array): void
    openStore(): Promise<import('headwater/storage').OrderedKeyValueStore>
  }`,
  test: `declare const test: { (title: string, run: () => Promise<void>): void; skip(title: string): void }`,
}

/** The blocks marked `ts` or `tsx` in docstrings of the built declarations. */
export function samplesOfDeclarations(): Sample[] {
  const directory = join(PROJECT, 'dist', 'types')
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const declarations = files.filter((name) => name.endsWith('.d.ts')).sort()
  return declarations.flatMap((name) => samplesOf(relative(PROJECT, join(directory, name))))
}

function samplesOf(path: string): Sample[] {
  const text = readFileSync(join(PROJECT, path), 'utf8')
  const blocks = text.matchAll(/^[ ]*\* ```(tsx?)\n([\s\S]*?)^[ ]*\* ```$/gm)
  return [...blocks].map(({ index, 1: language, 2: block }) => ({
    at: `${path}:${text.slice(0, index).split('\n').length}`,
    code: block!.replace(/^ *\* ?/gm, ''),
    language: language!,
  }))
}

/** The subpath of each name that the package exports, by the reports of its API. */
const EXPORTED = new Map<string, string>()
for (const file of readdirSync(join(PROJECT, 'api'))) {
  // It has the names of other subpaths.
  if (file === 'headwater-browser.api.md') continue
  const subpath = file.replace('.api.md', '').replace('-', '/')
  const names = readFileSync(join(PROJECT, 'api', file), 'utf8').matchAll(
    /^export (?:(?:abstract )?(?:class|const|function|interface|type) (\w+)|\{ (?:\w+ as )?(\w+) \})/gm,
  )
  for (const [, name, renamed] of names) {
    const exported = name ?? renamed!
    // Frameworks share names: the samples are of React.
    if (!EXPORTED.has(exported)) EXPORTED.set(exported, subpath)
  }
}

/** A declaration at the beginning of a line, with its name, or several in brackets. */
const DECLARATION =
  /^(?:export )?(?:class|const|(?:async )?function|import(?: type)?|interface|let|type) (\w+|\{[^}]*\}|\[[^\]]*\])/gm

/** Adds to a sample what it uses without declaring it: what the package exports, or else of the context. */
export function completed(sample: Sample, context: Readonly<Record<string, string>> = {}): Sample {
  const { code } = sample
  const declarations = new Map(Object.entries({ ...CONTEXT, ...context }))
  const wordsOf = (text: string) => text.match(/\b[A-Za-z]\w*/g) ?? []
  const heads = code.matchAll(DECLARATION)
  const declared = new Set([...heads].flatMap(([, head]) => wordsOf(head!)))
  const needed = [...new Set(wordsOf(code))].filter((name) => !declared.has(name))
  const lines = needed.flatMap((name) => {
    const subpath = EXPORTED.get(name)
    return subpath === undefined ? (declarations.get(name) ?? []) : `import { ${name} } from '${subpath}'`
  })
  return { ...sample, code: [...lines, code, 'export {}\n'].join('\n') }
}

/** Compiles samples against the built package. Returns what is wrong with each that is. */
export function errorsOf(samples: readonly Sample[], declarations = ''): { at: string; message: string }[] {
  // Inside the project, so that `headwater` is the package itself.
  const directory = mkdtempSync(join(PROJECT, 'dist', 'samples-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const ambient = join(directory, 'ambient.d.ts')
  writeFileSync(ambient, declarations)
  const files = samples.map((sample, i) => {
    // Files of a page import each other.
    const [page, name = `sample-${i}.${sample.language}`] = sample.at.split(': ')
    const path = join(directory, basename(page!, '.md'), name)
    ts.sys.createDirectory(dirname(path))
    writeFileSync(path, withJsx(sample))
    return path
  })
  const program = ts.createProgram([...files, ambient], {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    jsx: ts.JsxEmit.Preserve,
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    allowJs: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  })
  return files.flatMap((path, i) => {
    const file = program.getSourceFile(path)
    const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
    return diagnostics.map(({ messageText }) => ({
      at: samples[i]!.at,
      message: ts.flattenDiagnosticMessageText(messageText, '\n'),
    }))
  })
}

/** Each framework has types of its own for the elements of JSX. */
function withJsx({ language, code }: Sample): string {
  if (language !== 'tsx') return code
  const source = code.includes("from 'solid-js'") ? 'solid-js' : 'react'
  return `/** @jsxImportSource ${source} */\n${code}`
}
