import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { programOf, type Sample, samplesOfDeclarations } from './docstring-samples.ts'
import { PROJECT, repositoryFiles } from './examples.ts'

const CODE_BLOCK = /^```(ts|tsx|js)\b[^\n]*\n([\s\S]*?)^```$/gm

/** All code that shows the use of the package: docstrings, documents and examples. */
function shownSamples(): Sample[] {
  const files = repositoryFiles()
  const documents = files.filter((path) => /^(README|docs\/[\w-]+)\.md$/.test(path))
  const blocks = documents.flatMap((path) =>
    [...textOf(path).matchAll(CODE_BLOCK)].map(([, language, code]) => sampleOf(path, language!, code!)),
  )
  const examples = files
    .filter((path) => /^examples\/.*\.(tsx?|mjs)$/.test(path))
    .map((path) => sampleOf(path, /\.tsx$/.test(path) ? 'tsx' : 'ts', textOf(path)))
  return [...samplesOfDeclarations(), ...blocks, ...examples]
}

function textOf(path: string): string {
  return readFileSync(join(PROJECT, path), 'utf8')
}

function sampleOf(at: string, language: string, code: string): Sample {
  return { at, language: language === 'js' ? 'ts' : language, code }
}

/**
 * The public names, and the members of public classes and interfaces, that no example mentions. A type counts
 * as mentioned if a value of an example has it.
 */
export function membersWithoutExample(samples: readonly Sample[] = shownSamples()): string[] {
  const { program, files } = programOf(samples)
  const checker = program.getTypeChecker()
  const shown = new Set<ts.Declaration>()
  const add = (symbol: ts.Symbol | undefined): void => {
    const target = symbol && (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)
    for (const declaration of target?.declarations ?? []) {
      if (shown.has(declaration)) continue
      shown.add(declaration)
      // A member that overrides another shows that one too.
      const { parent } = declaration
      if (!parent || (!ts.isClassDeclaration(parent) && !ts.isInterfaceDeclaration(parent))) continue
      const type = checker.getTypeAtLocation(parent)
      for (const base of type.isClassOrInterface() ? checker.getBaseTypes(type) : []) {
        add(base.getProperty(target!.name))
      }
    }
  }
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) || ts.isStringLiteral(node)) {
      add(checker.getSymbolAtLocation(node))
      const type = checker.getTypeAtLocation(node)
      for (const one of type.isUnion() ? [type, ...type.types] : [type]) {
        add(one.aliasSymbol)
        add(one.symbol)
      }
      add(memberNamed(node, checker))
    }
    if (ts.isObjectLiteralExpression(node)) {
      const type = checker.getContextualType(node)
      for (const one of type === undefined ? [] : type.isUnion() ? [type, ...type.types] : [type]) {
        add(one.aliasSymbol)
        add(one.symbol)
      }
    }
    ts.forEachChild(node, visit)
  }
  for (const file of files) visit(file)
  return publicMembers(program).flatMap(([name, declarations]) =>
    declarations.some((declaration) => shown.has(declaration)) ? [] : [name],
  )
}

/** The member that a name of an object literal or of a pattern stands for. */
function memberNamed(node: ts.Node, checker: ts.TypeChecker): ts.Symbol | undefined {
  const { parent } = node
  if (ts.isBindingElement(parent) && (parent.propertyName ?? parent.name) === node) {
    return propertyOf(checker.getTypeAtLocation(parent.parent), node.getText())
  }
  const isKey = ts.isObjectLiteralElementLike(parent) && parent.name === node
  if (!isKey || !ts.isObjectLiteralExpression(parent.parent)) return undefined
  const type = checker.getContextualType(parent.parent)
  return type && propertyOf(type, node.getText())
}

/** Options are unions with undefined, and often of several shapes. */
function propertyOf(type: ts.Type, name: string): ts.Symbol | undefined {
  const types = type.isUnion() ? type.types : [type]
  return types.map((one) => one.getProperty(name)).find((property) => property !== undefined)
}

/** The declarations of each public name and member. */
function publicMembers(program: ts.Program): [name: string, declarations: readonly ts.Declaration[]][] {
  const checker = program.getTypeChecker()
  const members = new Map<string, readonly ts.Declaration[]>()
  for (const [entry, types] of entries()) {
    const file = program.getSourceFile(types)
    // A module that no example imports.
    if (file === undefined) members.set(entry, [])
    const module = file && checker.getSymbolAtLocation(file)
    for (const exported of module === undefined ? [] : checker.getExportsOfModule(module)) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
      const declarations = (symbol.declarations ?? []).filter(isOwn)
      if (declarations.length === 0 || [...members.values()].includes(declarations)) continue
      members.set(exported.name, declarations)
      for (const member of declarations.flatMap(membersOf)) {
        if (member.name === undefined || !ts.isIdentifier(member.name)) continue
        const name = `${exported.name}.${member.name.text}`
        members.set(name, [...(members.get(name) ?? []), member])
      }
    }
  }
  return [...members].sort(([a], [b]) => (a < b ? -1 : 1))
}

function entries(): (readonly [entry: string, types: string])[] {
  const { exports } = JSON.parse(textOf('package.json'))
  return Object.entries<{ types?: string }>(exports).flatMap(([subpath, { types }]) =>
    types === undefined || subpath === './browser'
      ? []
      : [[`headwater${subpath.slice(1)}`, join(PROJECT, types)] as const],
  )
}

function isOwn(declaration: ts.Declaration): boolean {
  return !declaration.getSourceFile().fileName.includes('/node_modules/')
}

function membersOf(declaration: ts.Declaration): readonly (ts.ClassElement | ts.TypeElement)[] {
  if (ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration)) return declaration.members
  const isObjectType = ts.isTypeAliasDeclaration(declaration) && ts.isTypeLiteralNode(declaration.type)
  return isObjectType ? (declaration.type as ts.TypeLiteralNode).members : []
}

/** The list of `members-without-example.txt`, which may only become shorter. */
export function knownMembers(): string[] {
  return textOf('test/docs/members-without-example.txt').split('\n').filter(Boolean)
}
