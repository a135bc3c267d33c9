import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { STORAGE_EXCEPTIONS, violations } from './rules.ts'
import { parseModule, readSources } from './source-module.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

function violationsOf(sources: Iterable<readonly [path: string, text: string]>): string[] {
  return violations([...sources].map(([path, text]) => parseModule(path, text)))
}

describe('the sources', () => {
  const sources = readSources(ROOT, ['src', 'adapters'])

  it('contain the modules that the rules name', () => {
    const entries = [
      'src/model/errors.ts',
      'src/core/sequence.ts',
      'src/storage/contract.ts',
      'adapters/conformance/index.ts',
      'src/engine/open.ts',
      'src/index.ts',
      'adapters/storage/memory/index.ts',
      'adapters/testing/index.ts',
    ]
    expect(entries.filter((path) => !sources.has(path))).toEqual([])
  })

  it('obey the rules', () => {
    expect(violationsOf(sources)).toEqual([])
  })

  it('need every exception for storages', () => {
    const modules = [...sources].map(([path, text]) => parseModule(path, text))
    const unused = STORAGE_EXCEPTIONS.filter(
      ({ files, target }) =>
        !modules.some(
          ({ path, imports }) => path.startsWith(files) && imports.some((one) => one.target === target),
        ),
    )
    expect(unused).toEqual([])
  })
})

describe('the architecture rules', () => {
  it.each<[string, string, string[]]>([
    ['src/core/a.ts', "import { x } from '../model/x.ts'", []],
    ['src/model/a.ts', "import { x } from '../core/x.ts'", ['src/model/a.ts imports src/core/x.ts']],
    ['src/core/a.ts', "import type { X } from '../storage/x.ts'", ['src/core/a.ts imports src/storage/x.ts']],
    ['src/storage/a.ts', "export * from '../engine/x.ts'", ['src/storage/a.ts imports src/engine/x.ts']],
    ['src/wire/a.ts', "const x = import('../engine/x.ts')", ['src/wire/a.ts imports src/engine/x.ts']],
    ['src/wire/a.ts', "type X = import('../engine/x.ts').X", ['src/wire/a.ts imports src/engine/x.ts']],
    ['src/engine/a.ts', "import './log/x.ts'", []],
    ['src/engine/log/a.ts', "import '../x.ts'", ['src/engine/log/a.ts imports src/engine/x.ts']],
    [
      'src/engine/log/a.ts',
      "import type { X } from '../encryption/x.ts'",
      ['src/engine/log/a.ts imports src/engine/encryption/x.ts'],
    ],
    ['src/engine/encryption/a.ts', "import '../log/x.ts'", []],
    ['src/engine/a.ts', "import '../wire/x.ts'", ['src/engine/a.ts imports src/wire/x.ts']],
    ['src/engine/a.ts', "import '../index.ts'", ['src/engine/a.ts imports src/index.ts']],
    ['src/engine/a.ts', "import '../../test/x.ts'", ['src/engine/a.ts imports test/x.ts']],
    ['src/engine/a.ts', "import '../../../x.ts'", ['src/engine/a.ts imports ../x.ts']],
    ['src/engine/a.ts', "import '../../adapters/http/x.ts'", ['src/engine/a.ts imports adapters/http/x.ts']],
    ['src/index.ts', "export * from './engine/x.ts'", []],
    ['src/cellar/a.ts', '', ['src/cellar/a.ts is in no layer']],
    ['adapters/attic/a.ts', '', ['adapters/attic/a.ts is in no layer']],
    ['adapters/http/a.ts', "import '../../src/index.ts'\nimport '../../src/wire/x.ts'", []],
    [
      'adapters/http/a.ts',
      "import type { X } from '../../src/engine/x.ts'",
      ['adapters/http/a.ts imports src/engine/x.ts'],
    ],
    ['adapters/node/a.ts', "import '../../src/core/x.ts'", ['adapters/node/a.ts imports src/core/x.ts']],
    ['adapters/transfer/a.ts', "import '../../src/engine/x.ts'", []],
    ['adapters/http/a.ts', "import '../node/x.ts'", ['adapters/http/a.ts imports adapters/node/x.ts']],
    ['adapters/node/a.ts', "import '../http/x.ts'", []],
    ['adapters/console/a.ts', "import '../http/x.ts'", []],
    ['adapters/console/a.ts', "import '../node/x.ts'", ['adapters/console/a.ts imports adapters/node/x.ts']],
    ['adapters/cli/a.ts', "import '../http/x.ts'\nimport '../node/x.ts'", []],
    ['adapters/cli/a.ts', "import '../storage/memory/x.ts'", []],
    ['adapters/cli/a.ts', "import '../transfer/x.ts'", []],
    [
      'adapters/transfer/a.ts',
      "import '../http/x.ts'",
      ['adapters/transfer/a.ts imports adapters/http/x.ts'],
    ],
    ['adapters/cli/a.ts', "import '../testing/x.ts'", ['adapters/cli/a.ts imports adapters/testing/x.ts']],
    [
      'adapters/storage/memory/a.ts',
      "import '../filesystem/x.ts'",
      ['adapters/storage/memory/a.ts imports adapters/storage/filesystem/x.ts'],
    ],
    ['src/sync/a.ts', "import '../core/x.ts'", []],
    ['src/sync/a.ts', "import type { X } from '../api/x.ts'", ['src/sync/a.ts imports src/api/x.ts']],
    ['adapters/sync/a.ts', "import '../../src/sync/x.ts'\nimport '../../src/api/x.ts'", []],
    ['adapters/sync/a.ts', "import '../../src/engine/x.ts'", ['adapters/sync/a.ts imports src/engine/x.ts']],
    [
      'adapters/sync/a.ts',
      "import '../storage/indexeddb/x.ts'",
      ['adapters/sync/a.ts imports adapters/storage/indexeddb/x.ts'],
    ],
    ['src/core/a.ts', "import type { X } from 'rxjs'", ['src/core/a.ts imports the package rxjs']],
    ['src/engine/a.ts', "import type { X } from 'rxjs'", []],
    ['src/engine/a.ts', "import { X } from 'rxjs'", ['src/engine/a.ts imports more than types of rxjs']],
    [
      'src/runtime/a.ts',
      "import { X } from 'rxjs/internal/X'",
      ['src/runtime/a.ts imports more than types of rxjs/internal/X'],
    ],
  ])('check imports: %s with %j', (path, text, expected) => {
    expect(violationsOf([[path, text]])).toEqual(expected)
  })

  it.each<[string, string[]]>([
    ['async function f() {}', ['async or await']],
    ['const f = async () => {}', ['async or await']],
    ['class A { async f() {} }', ['async or await']],
    ['await x', ['async or await']],
    ['for await (const x of y) {}', ['async or await']],
    ['type X = Promise<void>', ['Promise']],
    ['const x = Date.now()', ['Date.now']],
    ['const x = new Date(0)', ['Date']],
    ['const x = Math.random()', ['Math.random']],
    ['setTimeout(f, 0)', ['setTimeout']],
    ['globalThis.setTimeout(f, 0)', ['setTimeout']],
    ['const { getRandomValues } = crypto', ['crypto']],
    ['performance.now()', ['performance']],
    ['interface X { readonly at: Date }', []],
    ['const x = { process: 1 }.process', []],
    ['// Promise, Date.now()', []],
  ])('forbid side effects in pure layers: %j', (text, uses) => {
    for (const layer of ['src/core', 'src/model', 'src/sync']) {
      expect(violationsOf([[`${layer}/a.ts`, text]])).toEqual(uses.map((use) => `${layer}/a.ts uses ${use}`))
    }
    expect(violationsOf([['src/engine/a.ts', text]])).toEqual([])
  })

  it.each<[string, string, string | undefined]>([
    ['src/engine', "import { x } from 'node:fs'", 'node:fs'],
    ['src/engine', "export { x } from 'node:fs'", 'node:fs'],
    ['src/engine', "import { x } from 'fs/promises'", 'fs/promises'],
    ['src/engine', "const x = import('node:fs')", 'node:fs'],
    ['src/engine', "import { type X } from 'node:fs'", 'node:fs'],
    ['src/engine', "import type { X } from 'node:fs'", undefined],
    ['src/engine', "type X = typeof import('node:fs')", undefined],
    ['src/engine', "process.getBuiltinModule('node:fs')", undefined],
    ['src/wire', "import 'pg'", 'pg'],
    ['adapters/http', "import 'cli-progress'", 'cli-progress'],
    ['adapters/testing', "import 'pg/lib/x'", 'pg/lib/x'],
    ['adapters/storage/memory', "import 'node:path'", 'node:path'],
    ['adapters/storage/indexeddb', "import 'idb'", undefined],
    ['adapters/storage/filesystem', "import 'node:fs'", undefined],
    ['adapters/node', "import 'node:http'", undefined],
    ['adapters/cli', "import 'cli-progress'", undefined],
  ])('forbid Node modules in browser code: %s with %j', (layer, text, brought) => {
    const expected = brought === undefined ? [] : [`${layer}/a.ts brings ${brought} into the browser`]
    expect(violationsOf([[`${layer}/a.ts`, text]])).toEqual(expected)
  })

  it.each<[string, string | undefined]>([
    ["import { head } from '../../../src/storage/contract.ts'", undefined],
    ["import { type Head } from '../../../src/storage/contract.ts'", undefined],
    ["import type { Head, Other } from '../../../src/storage/contract.ts'", undefined],
    ["import { codec } from '../../../src/storage/index.ts'", undefined],
    ["import { other } from '../../../src/storage/contract.ts'", 'other of src/storage/contract.ts'],
    ["import { Typed } from '../../../src/model/typed.ts'", 'Typed of src/model/typed.ts'],
    ["import { type Typed } from '../../../src/model/typed.ts'", undefined],
    ["import * as contract from '../../../src/storage/contract.ts'", '* of src/storage/contract.ts'],
    ["import type { Stream } from '../../../src/engine/api/x.ts'", 'Stream of src/engine/api/x.ts'],
    ["const x = import('../../../src/index.ts')", '* of src/index.ts'],
  ])('allow a storage only what headwater/storage exports: %s', (text, name) => {
    const kit = [
      "export type * from './contract.ts'",
      "export { head } from './contract.ts'",
      "export { type Typed } from '../model/typed.ts'",
    ].join('\n')
    const path = 'adapters/storage/memory/a.ts'
    const sources = [
      ['src/storage/index.ts', kit],
      [path, text],
    ] as const
    const expected = `${path} imports ${name}, which headwater/storage does not export`
    expect(violationsOf(sources)).toEqual(name === undefined ? [] : [expected])
  })

  it('follow imports of browser code through other modules', () => {
    const sources = [
      ['adapters/http/index.ts', "import '../node/helper.ts'"],
      ['adapters/node/helper.ts', "import 'node:http'"],
    ] as const
    expect(violationsOf(sources)).toEqual([
      'adapters/http/index.ts imports adapters/node/helper.ts',
      'adapters/node/helper.ts brings node:http into the browser',
    ])
  })

  it('forbid import cycles, of types too', () => {
    const sources = [
      ['src/wire/a.ts', "import { b } from './b.ts'"],
      ['src/wire/b.ts', "import type { C } from './c.ts'\nimport './d.ts'"],
      ['src/wire/c.ts', "export * from './a.ts'"],
      ['src/wire/d.ts', ''],
    ] as const
    expect(violationsOf(sources)).toEqual([
      'src/wire/a.ts is in an import cycle: src/wire/a.ts -> src/wire/b.ts -> src/wire/c.ts -> src/wire/a.ts',
      'src/wire/b.ts is in an import cycle: src/wire/b.ts -> src/wire/c.ts -> src/wire/a.ts -> src/wire/b.ts',
      'src/wire/c.ts is in an import cycle: src/wire/c.ts -> src/wire/a.ts -> src/wire/b.ts -> src/wire/c.ts',
    ])
  })

  it('limit the length of files, except generated ones', () => {
    const long = 'x\n'.repeat(401)
    expect(violationsOf([['src/wire/a.ts', long]])).toEqual(['src/wire/a.ts has 401 lines'])
    expect(violationsOf([['src/wire/gen/a.ts', long]])).toEqual([])
    expect(violationsOf([['src/wire/a.ts', 'x\n'.repeat(400)]])).toEqual([])
  })
})
