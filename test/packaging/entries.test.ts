import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const PROJECT = resolve(import.meta.dirname, '../..')
const { exports } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))
const ENTRIES: [string, { types: string; default: string }][] = Object.entries<{
  types: string
  default: string
}>(exports).filter(([entry]) => entry !== './package.json')

describe('the declarations of each entry match the exports of its module', () => {
  const declarations = ENTRIES.map(([, { types }]) => join(PROJECT, types))
  // `npm run build:js` leaves them out.
  const missing = declarations.filter((path) => !existsSync(path))
  if (missing.length > 0) throw new Error(`no declarations: run npm run build (${missing[0]})`)
  const program = ts.createProgram(declarations, {
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    target: ts.ScriptTarget.ES2022,
    types: [],
  })
  const checker = program.getTypeChecker()

  /** The names that a program may use as values. */
  function declaredValues(types: string): string[] {
    const module = checker.getSymbolAtLocation(program.getSourceFile(join(PROJECT, types))!)!
    const isValue = (symbol: ts.Symbol): boolean => {
      const isTypeOnly =
        symbol.declarations?.some((declaration) => ts.isTypeOnlyExportDeclaration(declaration)) ?? false
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
      return !isTypeOnly && (target.flags & ts.SymbolFlags.Value) !== 0
    }
    return checker
      .getExportsOfModule(module)
      .filter(isValue)
      .map(({ name }) => name)
  }

  it.each(ENTRIES)('%s', async (_, { types, default: path }) => {
    const module = await import(join(PROJECT, path))
    expect(declaredValues(types).sort()).toEqual(Object.keys(module).sort())
  })
})

it('modules of Node are imported by names with `node:`', () => {
  const dist = join(PROJECT, 'dist')
  const modules = readdirSync(dist).filter((name) => name.endsWith('.js'))
  const imported = modules.flatMap((name) =>
    ts.preProcessFile(readFileSync(join(dist, name), 'utf8')).importedFiles.map(({ fileName }) => fileName),
  )
  const builtins = imported.filter((name) => isBuiltin(name))
  expect(builtins).toContain('node:fs/promises')
  expect(builtins.filter((name) => !name.startsWith('node:'))).toEqual([])
})

it('serving loads the code of Durable Streams with its first request only', () => {
  // The header of a request that only that code reads.
  const isOfDurableStreams = (text: string) => text.includes('stream-fork-sub-offset')
  const loaded = loadedWith(join(PROJECT, 'dist', 'node.js'))
  expect(loaded.length).toBeGreaterThan(3)
  expect(loaded.filter((path) => isOfDurableStreams(readFileSync(path, 'utf8')))).toEqual([])
  const whole = loadedWith(join(PROJECT, 'dist', 'durable-streams.js'))
  expect(whole.some((path) => isOfDurableStreams(readFileSync(path, 'utf8')))).toBe(true)
})

/** The modules of the package that a module loads at once, itself included. */
function loadedWith(entry: string): string[] {
  const paths = new Set([entry])
  for (const path of paths) {
    const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ES2022)
    for (const statement of source.statements) {
      const isImport = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)
      const specifier = isImport ? statement.moduleSpecifier : undefined
      if (specifier === undefined || !ts.isStringLiteral(specifier)) continue
      if (specifier.text.startsWith('.')) paths.add(join(path, '..', specifier.text))
    }
  }
  return [...paths]
}
