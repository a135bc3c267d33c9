// @module-tag slow

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type InstalledApp, installApp } from './installed-app.ts'

const PROJECT = resolve(import.meta.dirname, '../..')

let app: InstalledApp
let installed: string
beforeAll(async () => {
  app = await installApp()
  installed = join(app.directory, 'node_modules', 'headwater')
})
afterAll(() => app?.remove())

interface Frame {
  /** The path in the package. */
  readonly path: string
  /** The text of the line, which is empty if the file or the line does not exist. */
  readonly code: string
}

/** The frames in the package of the error with which a program ends. */
function framesOf(program: string): Frame[] {
  const code = `
    import { open } from 'headwater'
    import { memory } from 'headwater/memory'
    const hw = await open({ storage: memory() })
    try { ${program} } catch (error) { console.log(error.stack) }
    await hw.close()`
  const args = ['--enable-source-maps', '--input-type=module', '--eval', code]
  const stack = execFileSync(process.execPath, args, { cwd: app.directory, encoding: 'utf8' })
  expect(stack).toMatch(/^HeadwaterError: /)
  const frames = [...stack.matchAll(/^ +at .*?((?:file:|\/|[A-Z]:\\)[^()]*):(\d+):\d+\)?$/gm)]
  return frames.flatMap(([, location = '', line]) => {
    const file = location.startsWith('file:') ? fileURLToPath(location) : location
    const path = relative(installed, file).replaceAll('\\', '/')
    if (path.startsWith('..')) return []
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
    return { path, code: lines[Number(line) - 1] ?? '' }
  })
}

describe('with --enable-source-maps, a stack trace names lines of sources in the package', () => {
  it('for an error thrown at once', () => {
    const frames = framesOf('hw.basin(42)')
    expect(frames[0]!.code).toContain('new HeadwaterError(')
    expect(frames.at(-1)).toEqual({
      path: 'src/engine/api/engine.ts',
      code: expect.stringMatching(/throw notText\('basin'\)/),
    })
  })

  it('for an append that the pipeline rejects', () => {
    const [first, ...callers] = framesOf(
      `await hw.basin('my-basin').stream('my-stream').append('a', { matchSeqNum: 1 })`,
    )
    expect(first!.code).toContain('new HeadwaterError(')
    const pipeline = callers.find(({ path }) => path === 'src/engine/log/append-pipeline.ts')
    expect(pipeline?.code).toMatch(/\w\(/)
    for (const { path, code } of callers)
      expect([path, code]).toEqual([expect.stringMatching(/^src\/.*\.ts$/), expect.stringMatching(/\w\(/)])
  })
})

const DEFINITIONS = [
  ['open', 'headwater', 'src/engine/open.ts', /^open\(options: OpenOptions\)/],
  ['HeadwaterError', 'headwater', 'src/model/errors.ts', /^HeadwaterError extends Error/],
  ['memory', 'headwater/memory', 'adapters/storage/memory/index.ts', /^memory\(\)/],
  ['serve', 'headwater/node', 'adapters/node/serve.ts', /^serve\(hw: Engine/],
  ['mountConsole', 'headwater/console', 'adapters/console/index.ts', /^mountConsole\(/],
] as const

describe('go-to-definition of the language server of TypeScript', () => {
  interface Definition {
    readonly file: string
    readonly start: { readonly line: number; readonly offset: number }
  }
  let found: ReadonlyMap<number, Definition>

  beforeAll(async () => {
    const lines = DEFINITIONS.map(([name, entry]) => `import { ${name} } from '${entry}'`)
    const file = join(app.directory, 'app.ts')
    await writeFile(file, lines.join('\n'))
    const compilerOptions = { module: 'NodeNext', target: 'ES2022', types: [] }
    await writeFile(
      join(app.directory, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['app.ts'] }),
    )
    const definitions = lines.map((line, i) => ({
      seq: i,
      type: 'request',
      command: 'definition',
      arguments: { file, line: i + 1, offset: line.indexOf('{') + 3 },
    }))
    const requests = [
      { seq: lines.length, type: 'request', command: 'open', arguments: { file } },
      ...definitions,
    ]
    const server = createRequire(import.meta.url).resolve('typescript/lib/tsserver.js')
    const output = execFileSync(process.execPath, [server, '--disableAutomaticTypingAcquisition'], {
      cwd: app.directory,
      encoding: 'utf8',
      input: requests.map((request) => `${JSON.stringify(request)}\n`).join(''),
    })
    const messages = output.split('\n').filter((line) => line.startsWith('{'))
    const responses = messages.map((line) => JSON.parse(line)).filter(({ type }) => type === 'response')
    found = new Map(responses.map(({ request_seq, body }) => [request_seq, body?.[0]]))
  })

  it.each(DEFINITIONS.map(([name, entry, path, code], i) => ({ name, entry, path, code, i })))(
    'leads from $name of $entry to $path',
    ({ path, code, i }) => {
      const { file, start } = found.get(i)!
      const line = readFileSync(file, 'utf8').split('\n')[start.line - 1] ?? ''
      expect(relative(installed, file).replaceAll('\\', '/')).toBe(path)
      expect(line.slice(start.offset - 1)).toMatch(code)
    },
  )
})

describe('the package', () => {
  const filesIn = (directory: string): string[] =>
    readdirSync(join(installed, directory), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(installed, directory, name),
    )

  it('has at most 1.32 MB as it is published', () => {
    expect(app.packedBytes).toBeLessThanOrEqual(1_320_000)
  })

  it('contains the source of every declaration', () => {
    const declarations = filesIn('dist/types').filter((path) => path.endsWith('.d.ts'))
    expect(declarations).toContain(join(installed, 'dist/types/adapters/storage/filesystem/index.d.ts'))
    expect(declarations.filter((path) => !existsSync(`${path}.map`))).toEqual([])
  })

  it('contains all sources of the engine', () => {
    const sources = readdirSync(join(PROJECT, 'src'), { recursive: true, encoding: 'utf8' })
    const missing = sources.filter((path) => !existsSync(join(installed, 'src', path)))
    expect(sources).not.toEqual([])
    expect(missing).toEqual([])
  })

  it('contains every source that its maps name', () => {
    const maps = filesIn('dist').filter((path) => path.endsWith('.map'))
    const named = maps.flatMap((path) =>
      JSON.parse(readFileSync(path, 'utf8')).sources.map((source: string) => resolve(dirname(path), source)),
    )
    expect(named).toContain(join(installed, 'src', 'engine', 'open.ts'))
    expect(named.filter((path) => !existsSync(path))).toEqual([])
  })

  it('imports no module only for its effects, which none has', () => {
    const modules = filesIn('dist').filter((path) => path.endsWith('.js'))
    const imports = modules.flatMap((path) => readFileSync(path, 'utf8').match(/^import ".*/gm) ?? [])
    expect(modules).toContain(join(installed, 'dist', 'client.js'))
    expect(imports).toEqual([])
  })

  it('has no module that is minified but those that come so', () => {
    const modules = filesIn('dist').filter((path) => path.endsWith('.js'))
    const isMinified = (code: string) => code.length > 200 * code.split('\n').length
    const minified = modules.filter((path) => isMinified(readFileSync(path, 'utf8')))
    expect(minified.map((path) => relative(installed, path).replace(/-[A-Z0-9]{8}/, '')).sort()).toEqual([
      join('dist', 'browser.js'),
      join('dist', 'console-program.js'),
      // The document is one string.
      join('dist', 'openapi.js'),
      join('dist', 'zstd-module.js'),
    ])
  })

  it('imports RxJS in declarations only, by its public name', () => {
    const importedBy = (files: RegExp) =>
      filesIn('dist')
        .filter((path) => files.test(path))
        .flatMap((path) => ts.preProcessFile(readFileSync(path, 'utf8')).importedFiles)
        .map(({ fileName }) => fileName)
        .filter((name) => name.startsWith('rxjs'))
    expect(new Set(importedBy(/\.d\.ts$/))).toEqual(new Set(['rxjs']))
    expect(importedBy(/\.js$/)).toEqual([])
  })

  it.each([
    'memory',
    'filesystem',
    'postgres',
    'durable-object',
    'storage',
    'usage',
    'testing',
    'conformance',
    'console',
  ])('has no RxJS in the declarations of headwater/%s', (entry) => {
    expect(packagesDeclaredBy(`headwater/${entry}`)).not.toContain('rxjs')
  })

  it('has RxJS in the declarations with observables', () => {
    for (const entry of ['headwater', 'headwater/indexeddb'])
      expect(packagesDeclaredBy(entry)).toContain('rxjs')
  })

  /** The packages whose declarations a compiler reads for an import of the entry. */
  function packagesDeclaredBy(entry: string): string[] {
    const { exports } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    const { types } = exports[entry.replace('headwater', '.')]
    const program = ts.createProgram([join(installed, types)], {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      types: [],
    })
    const require = createRequire(join(installed, 'package.json'))
    const rxjs = dirname(require.resolve('rxjs/package.json'))
    const isOfRxjs = ({ fileName }: ts.SourceFile) => resolve(fileName).startsWith(rxjs)
    return program.getSourceFiles().some(isOfRxjs) ? ['rxjs'] : []
  }
})
