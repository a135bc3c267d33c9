import { dirname, join } from 'node:path'
import ts from 'typescript'

/** The declarations, in all files, that exported ones refer to. */
export class NeededDeclarations {
  #emitted
  #files = new Map()

  /** The text of each declaration file by path. */
  constructor(emitted) {
    this.#emitted = emitted
  }

  files() {
    return this.#files.values()
  }

  /** Adds all exports of a file. */
  addAll(path) {
    const file = this.#file(path)
    for (const name of file.exportedNames()) this.#add(file, name)
    for (const target of file.starTargets()) this.addAll(target)
  }

  #file(path) {
    if (!this.#files.has(path)) {
      const text = this.#emitted.get(path)
      if (text === undefined) throw new Error(`no declarations: ${path}`)
      this.#files.set(path, new DeclarationFile(path, text))
    }
    return this.#files.get(path)
  }

  /** Adds the export of a name, and what it refers to. */
  #add(file, name) {
    const reExport = file.reExports.get(name)
    if (reExport !== undefined) this.#addSpecifier(file, reExport)
    else this.#addLocal(file, name)
  }

  #addLocal(file, name) {
    const imported = file.imports.get(name)
    if (imported !== undefined) this.#addSpecifier(file, imported)
    for (const statement of file.declarations.get(name) ?? []) {
      if (file.needed.has(statement)) continue
      file.needed.add(statement)
      for (const identifier of identifiersIn(statement)) this.#addLocal(file, identifier)
    }
  }

  #addSpecifier(file, { node, target, name }) {
    if (file.needed.has(node)) return
    file.needed.add(node)
    if (target === undefined) this.#addLocal(file, name)
    else if (target !== 'package') this.#add(this.#file(target), name)
  }
}

/** The top-level declarations of a file, and which of them are needed. */
class DeclarationFile {
  /** Statements, and specifiers of imports and exports. */
  needed = new Set()
  /** Statements by name. */
  declarations = new Map()
  /** By the name in this file. */
  imports = new Map()
  /** By exported name. Those of declarations in this file have no target. */
  reExports = new Map()
  #source
  #stars = []

  constructor(path, text) {
    this.path = path
    this.#source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
    for (const statement of this.#source.statements) this.#index(statement)
  }

  #index(statement) {
    if (ts.isImportDeclaration(statement)) {
      const { name, namedBindings } = statement.importClause ?? {}
      if (name !== undefined || namedBindings === undefined || !ts.isNamedImports(namedBindings)) {
        throw new Error(`not a named import: ${statement.getText()} in ${this.path}`)
      }
      this.#indexSpecifiers(this.imports, namedBindings, statement)
    } else if (ts.isExportDeclaration(statement)) {
      if (statement.exportClause === undefined) this.#stars.push(this.#targetOf(statement))
      else if (!ts.isNamedExports(statement.exportClause)) throw new Error(`unknown: ${statement.getText()}`)
      else this.#indexSpecifiers(this.reExports, statement.exportClause, statement)
    } else {
      for (const name of declaredNames(statement)) {
        this.declarations.set(name, [...(this.declarations.get(name) ?? []), statement])
      }
    }
  }

  #indexSpecifiers(index, { elements }, statement) {
    const target = this.#targetOf(statement)
    for (const node of elements) {
      index.set(node.name.text, { node, target, name: (node.propertyName ?? node.name).text })
    }
  }

  /** The path of a file, or `package`; undefined for exports of this file. */
  #targetOf({ moduleSpecifier }) {
    if (moduleSpecifier === undefined) return undefined
    if (!moduleSpecifier.text.startsWith('.')) return 'package'
    return join(dirname(this.path), moduleSpecifier.text.replace(/\.tsx?$/, '.d.ts'))
  }

  exportedNames() {
    const exported = [...this.declarations].filter(([, [statement]]) => isExported(statement))
    return [...exported.map(([name]) => name), ...this.reExports.keys()]
  }

  starTargets() {
    return this.#stars
  }

  /** The lines of the needed declarations, with their indexes in the emitted file. */
  keptLines() {
    const lines = this.#source.text.split('\n').map((text, index) => ({ text, index }))
    for (const statement of this.#source.statements) {
      const { first, last } = this.#linesOf(statement)
      const kept = this.#keptText(statement)
      if (kept === statement.getText()) continue
      for (let i = first; i <= last; i++) lines[i] = undefined
      if (kept !== undefined) lines[first] = { text: kept, index: first }
    }
    return lines.filter((line) => line !== undefined).map(withJsExtensions)
  }

  /** Whether a line has other columns than in the emitted file. */
  isRewritten(text, index) {
    return this.#source.text.split('\n')[index] !== text
  }

  #linesOf(statement) {
    const comments = ts.getLeadingCommentRanges(this.#source.text, statement.getFullStart()) ?? []
    const start = comments[0]?.pos ?? statement.getStart()
    const lineOf = (position) => this.#source.getLineAndCharacterOfPosition(position).line
    return { first: lineOf(start), last: lineOf(statement.getEnd()) }
  }

  #keptText(statement) {
    const text = statement.getText()
    const clause = statement.importClause?.namedBindings ?? statement.exportClause
    if (clause === undefined) {
      const isDeclaration = declaredNames(statement).length > 0
      return !isDeclaration || this.needed.has(statement) ? text : undefined
    }
    const kept = clause.elements.filter((node) => this.needed.has(node))
    if (kept.length === clause.elements.length) return text
    if (kept.length === 0) return undefined
    return text.replace(clause.getText(), `{ ${kept.map((node) => node.getText()).join(', ')} }`)
  }
}

/** Names a file as TypeScript resolves it with every `moduleResolution`. */
function withJsExtensions({ text, index }) {
  return { text: text.replace(/(\bfrom |\bimport\()(['"])(\.[^'"]*)\.tsx?\2/g, '$1$2$3.js$2'), index }
}

function isExported(statement) {
  return (ts.getCombinedModifierFlags(statement) & ts.ModifierFlags.Export) !== 0
}

function declaredNames(statement) {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.text)
  }
  return statement.name === undefined ? [] : [statement.name.text]
}

function identifiersIn(node) {
  const found = new Set()
  const visit = (child) => {
    if (ts.isImportTypeNode(child)) throw new Error(`not a named import: ${child.getText()}`)
    if (ts.isIdentifier(child)) found.add(child.text)
    ts.forEachChild(child, visit)
  }
  visit(node)
  return found
}
