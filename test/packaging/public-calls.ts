import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import ts from 'typescript'

const PROJECT = resolve(import.meta.dirname, '../..')

/** A method, or a function, that the declarations of the package show to programs. */
interface PublicCall {
  /** `Stream.append`; the name alone of a function. */
  readonly name: string
  /** Whether it returns a promise or an asynchronous generator. */
  readonly isAsync: boolean
  /** Whether a parameter is, or may contain, an `AbortSignal` named `signal`. */
  readonly takesSignal: boolean
}

/** A class or an interface that programs can hold. */
interface PublicType {
  readonly name: string
  /** Names of members; `Symbol.asyncDispose` and `Symbol.dispose` by these names. */
  readonly members: readonly string[]
}

/** The declaration files of the entries of the package. */
export function packageEntries(): string[] {
  const { exports } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))
  return Object.values<{ types?: string }>(exports).flatMap(({ types }) =>
    types === undefined ? [] : [join(PROJECT, types)],
  )
}

interface PublicApi {
  /** The names that each entry exports, in the order of the entries. */
  readonly exported: readonly (readonly string[])[]
  readonly calls: readonly PublicCall[]
  readonly types: readonly PublicType[]
}

/** Walks what the entries export, and the types that these refer to. */
export function publicApi(entries: readonly string[]): PublicApi {
  const program = ts.createProgram([...entries], {
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    types: [],
  })
  return new Walk(program).result(entries)
}

class Walk {
  readonly #program: ts.Program
  readonly #checker: ts.TypeChecker
  readonly #seen = new Set<ts.Symbol>()
  readonly #calls = new Map<string, PublicCall>()
  readonly #types = new Map<string, PublicType>()

  constructor(program: ts.Program) {
    this.#program = program
    this.#checker = program.getTypeChecker()
  }

  result(entries: readonly string[]): PublicApi {
    const exported = entries.map((entry) => {
      const module = this.#checker.getSymbolAtLocation(this.#program.getSourceFile(entry)!)!
      const symbols = this.#checker.getExportsOfModule(module)
      for (const symbol of symbols) this.#visit(symbol)
      return symbols.map(({ name }) => name)
    })
    return { exported, calls: [...this.#calls.values()], types: [...this.#types.values()] }
  }

  #visit(given: ts.Symbol): void {
    const symbol = given.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(given) : given
    if (this.#seen.has(symbol)) return
    this.#seen.add(symbol)
    for (const declaration of symbol.declarations ?? []) {
      if (!this.#isOwn(declaration)) continue
      this.#visitReferences(declaration)
      if (ts.isFunctionDeclaration(declaration)) this.#addCalls(symbol.name, symbol, declaration)
      else if (ts.isVariableDeclaration(declaration)) this.#addCalls(symbol.name, symbol, declaration)
      else if (ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration)) {
        this.#addType(symbol, declaration)
      }
    }
  }

  #isOwn(node: ts.Node): boolean {
    return !node.getSourceFile().fileName.includes('/node_modules/')
  }

  #visitReferences(declaration: ts.Node): void {
    const visit = (node: ts.Node): void => {
      // Programs do not call the constructors of what they are passed.
      if (ts.isConstructorDeclaration(node)) return
      if (ts.isIdentifier(node)) {
        const symbol = this.#checker.getSymbolAtLocation(node)
        if (symbol !== undefined) this.#visit(symbol)
      }
      ts.forEachChild(node, visit)
    }
    visit(declaration)
  }

  #addType(symbol: ts.Symbol, declaration: ts.ClassDeclaration | ts.InterfaceDeclaration): void {
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol)
    const properties = type.getProperties().filter((property) => !isPrivate(property))
    this.#types.set(symbol.name, { name: symbol.name, members: properties.map(memberName) })
    for (const property of properties) {
      this.#addCalls(`${symbol.name}.${memberName(property)}`, property, declaration)
    }
    const statics = ts.isClassDeclaration(declaration) ? (symbol.exports ?? []) : []
    for (const [, property] of statics)
      this.#addCalls(`${symbol.name}.${property.name}`, property, declaration)
  }

  #addCalls(name: string, symbol: ts.Symbol, at: ts.Node): void {
    const type = this.#checker.getNonNullableType(this.#checker.getTypeOfSymbolAtLocation(symbol, at))
    const signatures = type.getCallSignatures()
    if (signatures.length === 0) return
    this.#calls.set(name, {
      name,
      isAsync: signatures.some((one) => this.#isAsync(one.getReturnType())),
      takesSignal: signatures.some((one) =>
        one.parameters.some((parameter) =>
          this.#hasSignal(this.#checker.getTypeOfSymbolAtLocation(parameter, at)),
        ),
      ),
    })
  }

  #isAsync(type: ts.Type): boolean {
    const parts = type.isUnion() ? type.types : [type]
    return parts.some((part) =>
      ['Promise', 'PromiseLike', 'AsyncGenerator'].includes(part.getSymbol()?.name ?? ''),
    )
  }

  #hasSignal(given: ts.Type): boolean {
    const type = this.#checker.getNonNullableType(given)
    const parts = type.isUnion() ? type.types : [type]
    return parts.some((part) => {
      if (part.getSymbol()?.name === 'AbortSignal') return true
      const signal = part.getProperty('signal')
      return (
        signal !== undefined &&
        this.#checker.typeToString(this.#checker.getTypeOfSymbol(signal)).includes('AbortSignal')
      )
    })
  }
}

function isPrivate(symbol: ts.Symbol): boolean {
  return (
    symbol.name.startsWith('__#') ||
    (symbol.declarations ?? []).some(
      (declaration) => (ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Private) !== 0,
    )
  )
}

/** The name of a member; those of symbols end in the number of the symbol in this program. */
function memberName(symbol: ts.Symbol): string {
  const match = /^__@(\w+)@\d+$/.exec(symbol.name)
  return match === null ? symbol.name : `Symbol.${match[1]}`
}
