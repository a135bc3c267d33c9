import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import ts from 'typescript'

interface Import {
  /** A path from the root of the repository, or the name of a package. */
  readonly target: string
  /** Erased when the code is built. */
  readonly isTypeOnly: boolean
  /** The names that are imported or exported, and which of them are only types; `*` for all of a module. */
  readonly names: readonly ImportedName[]
  /** Loaded by `import()`, when it is first needed. */
  readonly isDynamic?: boolean
}

interface ImportedName {
  readonly name: string
  readonly isTypeOnly: boolean
}

export interface SourceModule {
  readonly path: string
  readonly lines: number
  readonly imports: readonly Import[]
  /** The imports that are exported again. */
  readonly reExports: readonly Import[]
  /** What it uses of time, chance and asynchrony, in the order of the text. */
  readonly impurities: readonly string[]
}

const ASYNC = 'async or await'
const IMPURE_GLOBALS = new Set([
  ...['Promise', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'requestAnimationFrame'],
  ...['crypto', 'performance', 'fetch', 'process', 'require', 'Worker', 'BroadcastChannel', 'MessageChannel'],
])

const ALL = '*'

/** The names in braces; all without braces. */
function namesOf(
  bindings: ts.NamedImportBindings | ts.NamedExportBindings | undefined,
  isTypeOnly: boolean,
): ImportedName[] {
  if (bindings === undefined || !(ts.isNamedImports(bindings) || ts.isNamedExports(bindings))) {
    return [{ name: ALL, isTypeOnly }]
  }
  return bindings.elements.map((element) => ({
    name: (element.propertyName ?? element.name).text,
    isTypeOnly: isTypeOnly || element.isTypeOnly,
  }))
}

/** Every TypeScript file of these directories, by its path from the root. */
export function readSources(root: string, directories: readonly string[]): Map<string, string> {
  const sources = new Map<string, string>()
  for (const directory of directories) {
    for (const entry of readdirSync(`${root}/${directory}`, { recursive: true, encoding: 'utf8' })) {
      const path = posix.join(directory, entry.replaceAll('\\', '/'))
      if (/\.tsx?$/.test(path)) sources.set(path, readFileSync(`${root}/${path}`, 'utf8'))
    }
  }
  return sources
}

export function parseModule(path: string, text: string): SourceModule {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true)
  const imports: Import[] = []
  const reExports: Import[] = []
  const impurities: string[] = []
  const add = (
    specifier: ts.Node | undefined,
    isTypeOnly: boolean,
    names = [{ name: ALL, isTypeOnly }],
    isDynamic = false,
  ): Import | undefined => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return undefined
    const target = specifier.text.startsWith('.')
      ? posix.join(posix.dirname(path), specifier.text)
      : specifier.text
    const added = { target, isTypeOnly, names, ...(isDynamic && { isDynamic }) }
    imports.push(added)
    return added
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      const { moduleSpecifier, importClause } = node
      const isTypeOnly = importClause?.isTypeOnly === true
      add(moduleSpecifier, isTypeOnly, namesOf(importClause?.namedBindings, isTypeOnly))
    } else if (ts.isExportDeclaration(node)) {
      const { moduleSpecifier, isTypeOnly, exportClause } = node
      const added = add(moduleSpecifier, isTypeOnly, namesOf(exportClause, isTypeOnly))
      if (added !== undefined) reExports.push(added)
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false, undefined, true)
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true)
    }
    const impurity = impurityOf(node)
    if (impurity !== undefined) impurities.push(impurity)
    ts.forEachChild(node, visit)
  }
  visit(file)
  return { path, lines: text.replace(/\n$/, '').split('\n').length, imports, reExports, impurities }
}

function impurityOf(node: ts.Node): string | undefined {
  if (node.kind === ts.SyntaxKind.AsyncKeyword || ts.isAwaitExpression(node)) return ASYNC
  if (ts.isForOfStatement(node) && node.awaitModifier !== undefined) return ASYNC
  if (ts.isPropertyAccessExpression(node) && ['Date.now', 'Math.random'].includes(node.getText())) {
    return node.getText()
  }
  if ((ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === 'Date') {
    return 'Date'
  }
  return ts.isIdentifier(node) && !isMemberName(node) && IMPURE_GLOBALS.has(node.text) ? node.text : undefined
}

/**
 * True for `x` in `y.x` and `{ x: 1 }`, which say nothing about a global `x`; a member of `globalThis` is
 * one.
 */
function isMemberName(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) {
    return parent.name === node && parent.expression.getText() !== 'globalThis'
  }
  return (
    (ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent) || ts.isMethodSignature(parent)) &&
    parent.name === node
  )
}
