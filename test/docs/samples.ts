import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { PROJECT } from './examples.ts'

/** A block marked `ts` or `tsx` in a docstring of the built declarations. */
export interface Sample {
  /** The declaration file and the line. */
  readonly at: string
  readonly code: string
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

/**
 * Compiles samples. Returns what is wrong with each, in the order of the samples.
 */
export function errorsOf(samples: readonly Sample[]): string[][] {
  const { program, files } = programOf(samples)
  return files.map((file) => {
    const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
    return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
  })
}

/** A program of samples, each a module of its own, as in an app with the package. */
function programOf(samples: readonly Sample[]): {
  readonly program: ts.Program
  /** The results, in the order of the samples. */
  readonly files: readonly ts.SourceFile[]
} {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    jsx: ts.JsxEmit.ReactJSX,
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
  }
  const names = exportedNames(options)
  const modules = new Map(
    samples.map((sample, i) => [
      join(PROJECT, `docstring-sample-${i}.${sample.language}`),
      moduleOf(sample, names),
    ]),
  )
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => modules.has(path) || fileExists.call(host, path)
  host.readFile = (path) => modules.get(path) ?? readFile.call(host, path)
  host.getSourceFile = (path, languageVersion) => {
    const text = modules.get(path)
    return text === undefined
      ? getSourceFile.call(host, path, languageVersion)
      : ts.createSourceFile(path, text, languageVersion)
  }
  const program = ts.createProgram([...modules.keys()], options, host)
  return { program, files: [...modules.keys()].map((path) => program.getSourceFile(path)!) }
}

/** The subpath of each exported name. */
function exportedNames(options: ts.CompilerOptions): ReadonlyMap<string, string> {
  const { exports } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))
  const entries = Object.entries<{ types?: string }>(exports).flatMap(([subpath, { types }]) =>
    // It has the names of other entries.
    types === undefined || subpath === './browser' ? [] : [[subpath, join(PROJECT, types)] as const],
  )
  const program = ts.createProgram(
    entries.map(([, path]) => path),
    options,
  )
  const checker = program.getTypeChecker()
  const names = new Map<string, string>()
  for (const [subpath, path] of entries) {
    const file = program.getSourceFile(path)
    const module = file && checker.getSymbolAtLocation(file)
    if (module === undefined) throw new Error(`no declarations: run npm run build (${path})`)
    for (const { name } of checker.getExportsOfModule(module)) {
      if (!names.has(name)) names.set(name, `headwater${subpath.slice(1)}`)
    }
  }
  return names
}

function moduleOf({ code, language }: Sample, exported: ReadonlyMap<string, string>): string {
  const file = ts.createSourceFile(`sample.${language}`, code, ts.ScriptTarget.Latest, true)
  const { declared, used } = namesIn(file)
  const context = [...used]
    .filter((name) => !declared.has(name))
    .flatMap((name) => {
      const subpath = exported.get(name)
      if (subpath !== undefined) return `import { ${name} } from '${subpath}'`
      return CONTEXT[name] ?? []
    })
  return `${context.join('\n')}\n${code}\nexport {}\n`
}

function namesIn(file: ts.SourceFile): { declared: Set<string>; used: Set<string> } {
  const declared = new Set<string>()
  const used = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) {
      const { parent } = node
      const isMember = ts.isPropertyAccessExpression(parent) && parent.name === node
      const isKey = ts.isPropertyAssignment(parent) && parent.name === node
      const isDeclaration = 'name' in parent && parent.name === node && !isMember && !isKey
      // `{ stream }` uses the name.
      if (isDeclaration && !ts.isShorthandPropertyAssignment(parent)) declared.add(node.text)
      else if (!isMember && !isKey) used.add(node.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return { declared, used }
}
