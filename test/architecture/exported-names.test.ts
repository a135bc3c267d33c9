import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { readSources } from './source-module.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Each exports the same name for the same thing on several sides. */
const SAME_ON_SEVERAL_SIDES: readonly (readonly string[])[] = [
  // An operation of the protocol: its endpoint, and the request for it.
  ['adapters/client/account.ts', 'adapters/http/endpoints/control-plane.ts'],
  ['adapters/client/control.ts', 'adapters/http/endpoints/control-plane.ts'],
  // An operation that two protocols have.
  ['adapters/durable-streams/append.ts', 'adapters/http/endpoints/append.ts'],
  ['adapters/durable-streams/read.ts', 'adapters/http/endpoints/read.ts'],
  // A hook, in each framework that has hooks.
  ['adapters/react/index.ts', 'adapters/solid/index.ts', 'adapters/vue/index.ts'],
  // The function that a page calls, and the one in the program that it passes the call to.
  ['adapters/console/index.ts', 'adapters/console/program.tsx'],
]
/** The messages of the protocol buffers have the names of what they encode. */
const GENERATED = 'src/wire/gen/'

describe('exported names', () => {
  it('have one meaning each', () => {
    const files = new Map<string, string[]>()
    for (const [path, text] of readSources(ROOT, ['src', 'adapters'])) {
      if (path.startsWith(GENERATED)) continue
      for (const name of declaredExports(path, text)) files.set(name, [...(files.get(name) ?? []), path])
    }
    const repeated = [...files].filter(([, paths]) => paths.length > 1 && !isSameThing(paths))
    expect(repeated.map(([name, paths]) => `${name}: ${paths.join(', ')}`)).toEqual([])
  })

  it('of a file are those of its declarations', () => {
    const text = `
      export class A {}
      export interface B {}
      export type C = A
      export const D = 1, E = 2
      export async function f() {}
      export type { G } from './g.ts'
      const h = 1
    `
    expect(declaredExports('a.ts', text)).toEqual(['A', 'B', 'C', 'D', 'E', 'f'])
  })
})

function isSameThing(paths: readonly string[]): boolean {
  return SAME_ON_SEVERAL_SIDES.some(
    (pair) => pair.length === paths.length && pair.every((p) => paths.includes(p)),
  )
}

/** The names that a file declares and exports, each once: a type and a value may share a name. */
function declaredExports(path: string, text: string): string[] {
  const names = new Set<string>()
  for (const statement of ts.createSourceFile(path, text, ts.ScriptTarget.Latest).statements) {
    const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined
    if (!modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) continue
    const declarations = ts.isVariableStatement(statement)
      ? statement.declarationList.declarations
      : [statement as ts.DeclarationStatement]
    for (const { name } of declarations) if (name !== undefined && ts.isIdentifier(name)) names.add(name.text)
  }
  return [...names]
}
