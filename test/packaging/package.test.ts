// @module-tag slow

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import ts from 'typescript'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type InstalledApp, installApp } from './installed-app.ts'

const PEERS = ['aws4fetch', 'libsodium-wrappers', 'pg', 'react', 'solid-js', 'vue']
/** Their declarations need types of Node or of a framework. */
const WITH_TYPES = ['headwater/node', 'headwater/react', 'headwater/solid', 'headwater/vue']
const OF_NODE = ['filesystem', 'node', 'postgres', 's3']

let app: InstalledApp
let installed: string
let entries: readonly { readonly name: string; readonly types: string; readonly module: string }[]
beforeAll(async () => {
  app = await installApp([...PEERS, '@types/node', '@types/react'])
  installed = join(app.directory, 'node_modules', 'headwater')
  const { exports } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  entries = Object.entries<{ types: string; default: string }>(exports)
    .filter(([subpath]) => subpath !== './package.json')
    .map(([subpath, { types, default: module }]) => ({
      name: `headwater${subpath.slice(1)}`,
      types: join(installed, types),
      module: join(installed, module),
    }))
})
afterAll(() => app?.remove())

/** What a program of the app prints. */
function printedBy(code: string, ...options: string[]): string {
  const args = [...options, '--input-type=module', '--eval', code]
  return execFileSync(process.execPath, args, { cwd: app.directory, encoding: 'utf8' })
}

/** A program that imports these entries, in a project with these types. */
function programOf(names: readonly string[], types: string[]): ts.Program {
  const file = join(app.directory, `imports-${names.length}.ts`)
  writeFileSync(file, names.map((name, i) => `export * as entry${i} from '${name}'\n`).join(''))
  return ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    strict: true,
    exactOptionalPropertyTypes: true,
    types,
    noEmit: true,
  })
}

it.each([
  ['of a page, without the types of Node', [], (name: string) => !WITH_TYPES.includes(name)],
  ['with the types of Node and of frameworks', ['node'], () => true],
])('its declarations compile in a project %s', (_, types, selects) => {
  const names = entries.map(({ name }) => name).filter(selects)
  const errors = ts.getPreEmitDiagnostics(programOf(names, types)).map(({ file, messageText }) => ({
    file: file?.fileName,
    message: ts.flattenDiagnosticMessageText(messageText, ' '),
  }))
  expect(errors).toEqual([])
})

it('each subpath exports in Node what its declarations declare', () => {
  const names = entries.map(({ name }) => name)
  const list = JSON.stringify(names)
  const exported: [string, string[]][] = JSON.parse(
    printedBy(`const modules = await Promise.all(${list}.map((name) => import(name)))
      console.log(JSON.stringify(${list}.map((name, i) => [name, Object.keys(modules[i]).sort()])))`),
  )
  const program = programOf(names, ['node'])
  const checker = program.getTypeChecker()
  const isValue = (symbol: ts.Symbol): boolean => {
    if (symbol.declarations?.some((declaration) => ts.isTypeOnlyExportDeclaration(declaration))) return false
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    return (target.flags & ts.SymbolFlags.Value) !== 0
  }
  const declared = entries.map(({ name, types }) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(types)!)!
    const values = checker.getExportsOfModule(module).filter(isValue)
    return [name, values.map(({ name }) => name).sort()]
  })
  expect(exported).toEqual(declared)
})

it('a stack trace names lines of sources in the package, with --enable-source-maps', () => {
  const stack = printedBy(
    `import { open } from 'headwater'
    import { memory } from 'headwater/memory'
    const hw = await open({ storage: memory() })
    try { hw.basin(42) } catch (error) { console.log(error.stack) }
    await hw.close()`,
    '--enable-source-maps',
  )
  const frames = [...stack.matchAll(/^ +at .*?((?:file:|\/)[^()]*):(\d+):\d+\)?$/gm)]
    .map(([, at, line]) => ({ file: at!.startsWith('file:') ? fileURLToPath(at!) : at!, line: Number(line) }))
    .filter(({ file }) => file.startsWith(installed))
  const { file, line } = frames.at(-1)!
  expect(relative(installed, file)).toBe(join('src', 'engine', 'api', 'engine.ts'))
  expect(readFileSync(file, 'utf8').split('\n')[line - 1]).toContain(`assertText(name, 'basin')`)
})

it('contains the sources of the library that its maps name, of declarations too', () => {
  const files = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' })
  const maps = files.filter((path) => path.endsWith('.map')).map((path) => join(installed, 'dist', path))
  const sources = maps.flatMap((path) =>
    JSON.parse(readFileSync(path, 'utf8')).sources.map((source: string) => resolve(dirname(path), source)),
  )
  expect(sources).toContain(join(installed, 'src', 'engine', 'options.ts'))
  // Neither the sources of programs nor those of bundled dependencies.
  const isOfLibrary = (path: string) =>
    /^(src|adapters(?!.(cli|console|transfer)\b))/.test(relative(installed, path))
  expect(sources.filter((path) => isOfLibrary(path) && !existsSync(path))).toEqual([])
  const declarations = files.filter((path) => path.endsWith('.d.ts'))
  expect(declarations.filter((path) => !files.includes(`${path}.map`))).toEqual([])
})

it('its entries for browsers reach no module of Node, and those for Node do', async () => {
  const bundle = (names: readonly string[]) =>
    build({
      stdin: {
        contents: names.map((name, i) => `export * as entry${i} from '${name}'`).join('\n'),
        resolveDir: app.directory,
      },
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'browser',
      outdir: 'out',
      write: false,
      metafile: true,
      logLevel: 'silent',
    })
  const isOfNode = (name: string) => OF_NODE.includes(name.replace('headwater/', ''))
  const names = entries.map(({ name }) => name)
  const { metafile } = await bundle(names.filter((name) => !isOfNode(name)))
  const imported = Object.values(metafile.inputs).flatMap(({ imports }) => imports.map(({ path }) => path))
  expect(imported.filter(isBuiltin)).toEqual([])
  for (const name of names.filter(isOfNode)) await expect(bundle([name])).rejects.toThrow('Could not resolve')
})

it('its observables work with the rxjs of the app', () => {
  const printed = printedBy(`
    import { open } from 'headwater'
    import { memory } from 'headwater/memory'
    import { concatMap, delay, firstValueFrom, isObservable, merge, of, take, toArray } from 'rxjs'
    const hw = await open({ storage: memory() })
    const stream = hw.basin('my-basin').stream('my-stream')
    await stream.append(['one', 'two'])
    const records$ = stream.follow({ seqNum: 0 }).records$
    const twice$ = records$.pipe(concatMap(({ body }) => of(body, body).pipe(delay(1))), take(3), toArray())
    console.log(isObservable(records$), (await firstValueFrom(merge(twice$))).join())
    await hw.close()`)
  expect(printed).toBe('true one,one,two\n')
})

it('the script of the console page is in a server that is bundled', async () => {
  const { outputFiles } = await build({
    stdin: {
      contents: `import { consolePage } from 'headwater/console-page'
const { html, scripts } = consolePage()
console.log(JSON.stringify({ html, script: await scripts['console.js']() }))`,
      resolveDir: app.directory,
    },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    logLevel: 'error',
  })
  const program = join(app.directory, 'console-page.mjs')
  writeFileSync(program, outputFiles[0]!.contents)
  const printed = execFileSync(process.execPath, [program], { encoding: 'utf8', maxBuffer: 16_000_000 })
  const { html, script } = JSON.parse(printed)
  expect(html).toContain('src="./console.js"')
  expect(script).toContain('Nothing is stored yet')
})

it('decompresses zstd, in Node before 22.15 by the codec in the build', () => {
  // A frame of zstd: `{"records":[{"body":"compressed"}]}`.
  const body = 'KLUv/SAjGQEAeyJyZWNvcmRzIjpbeyJib2R5IjoiY29tcHJlc3NlZCJ9XX0='
  const printed = printedBy(`
    import { open } from 'headwater'
    import { createHandler } from 'headwater/http'
    import { memory } from 'headwater/memory'
    const hw = await open({ storage: memory() })
    await hw.createBasin('my-basin')
    await hw.basin('my-basin').createStream('s')
    const handler = createHandler(hw, { auth: 'none', basin: 'my-basin' })
    await handler(new Request('http://localhost/v1/streams/s/records', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'zstd' },
      body: Buffer.from('${body}', 'base64'),
    }))
    const [record] = await hw.basin('my-basin').stream('s').read().toArray()
    console.log(record.body, process.listenerCount('uncaughtException'))
    await hw.close()`)
  expect(printed).toBe('compressed 0\n')
})
