import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { readSources } from './source-module.ts'

/** The optional members of interfaces and object types in a file that reject an explicit `undefined`. */
function strictMembers(path: string, text: string): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isPropertySignature(node) && node.questionToken !== undefined && !acceptsUndefined(node.type)) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart())
      found.push(`${path}:${line + 1} ${node.name.getText()}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

function acceptsUndefined(type: ts.TypeNode | undefined): boolean {
  if (type === undefined) return true
  const kinds = (ts.isUnionTypeNode(type) ? [...type.types] : [type]).map(({ kind }) => kind)
  const { UndefinedKeyword, UnknownKeyword, NeverKeyword } = ts.SyntaxKind
  return kinds.some((kind) => [UndefinedKeyword, UnknownKeyword, NeverKeyword].includes(kind as never))
}

test('an optional member that rejects undefined is found', () => {
  const text = 'interface A { a?: string; b?: { c?: number | undefined } }\ntype B = { d: 1; e?: () => void }'
  expect(strictMembers('a.ts', text)).toEqual(['a.ts:1 a', 'a.ts:1 b', 'a.ts:2 e'])
})

test('every optional member accepts undefined, so that options can be passed on', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const sources = [...readSources(root, ['src', 'adapters'])].filter(([path]) => !path.includes('/gen/'))
  expect(sources.length).toBeGreaterThan(300)
  expect(sources.flatMap(([path, text]) => strictMembers(path, text))).toEqual([])
})
