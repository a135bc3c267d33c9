// @module-tag slow

import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import tsup from '../../tsup.config.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** The modules that the subpaths of the package are built of. */
function publicModules(): string[] {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const { entry } = tsup as { readonly entry: Readonly<Record<string, string>> }
  return Object.keys(exports)
    .filter((subpath) => subpath !== './package.json')
    .map((subpath) => entry[subpath === '.' ? 'index' : subpath.slice(2)]!)
}

test('every exported symbol and member has a docstring', () => {
  expect(undocumented(publicModules())).toEqual([])
})

/** An exported symbol, or a member of one, without a docstring. */
interface Gap {
  /** `Symbol` or `Symbol.member`. */
  readonly name: string
  readonly path: string
}

/**
 * Finds the exported symbols of modules, and the members of exported classes, interfaces and object types,
 * that have no docstring.
 */
function undocumented(modules: readonly string[]): Gap[] {
  const files = modules.map((path) => join(ROOT, path))
  const program = ts.createProgram(files, compilerOptions())
  const checker = program.getTypeChecker()
  const gaps = new Map<string, Gap>()

  function check(symbol: ts.Symbol, name: string): void {
    const declarations = (symbol.declarations ?? []).filter(isOwn)
    if (declarations.length === 0) return
    if (symbol.getJsDocTags().some(({ name: tag }) => tag === 'internal')) return
    const path = relative(ROOT, declarations[0]!.getSourceFile().fileName)
    if (symbol.getDocumentationComment(checker).length === 0) gaps.set(name, { name, path })
    for (const declaration of declarations) {
      for (const member of membersOf(declaration)) {
        const memberSymbol = member.name && checker.getSymbolAtLocation(member.name)
        if (memberSymbol && isPublic(member)) check(memberSymbol, `${name}.${memberSymbol.name}`)
      }
    }
  }

  for (const file of files) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)
    if (module === undefined) throw new Error(`${file} is not a module`)
    for (const exported of checker.getExportsOfModule(module)) {
      const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0
      check(isAlias ? checker.getAliasedSymbol(exported) : exported, exported.name)
    }
  }
  return [...gaps.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function compilerOptions(): ts.CompilerOptions {
  const path = join(ROOT, 'tsconfig.json')
  const { config } = ts.readConfigFile(path, ts.sys.readFile)
  return ts.parseJsonConfigFileContent(config, ts.sys, ROOT).options
}

function isOwn(declaration: ts.Declaration): boolean {
  return !declaration.getSourceFile().fileName.includes('/node_modules/')
}

type Member = ts.ClassElement | ts.TypeElement

function membersOf(declaration: ts.Declaration): readonly Member[] {
  if (ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration)) return declaration.members
  const isObjectType = ts.isTypeAliasDeclaration(declaration) && ts.isTypeLiteralNode(declaration.type)
  return isObjectType ? (declaration.type as ts.TypeLiteralNode).members : []
}

function isPublic(member: Member): boolean {
  const isHidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected
  // What a symbol such as `Symbol.asyncDispose` names is documented by its name.
  if (
    member.name === undefined ||
    ts.isPrivateIdentifier(member.name) ||
    ts.isComputedPropertyName(member.name)
  )
    return false
  return (ts.getCombinedModifierFlags(member as ts.Declaration) & isHidden) === 0
}
