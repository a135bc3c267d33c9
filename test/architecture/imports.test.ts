import { builtinModules } from 'node:module'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseModule, readSources, type SourceModule } from './source-module.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const OF_ALL = ['src/model', 'src/core', 'src/runtime', 'src/storage']
const OF_ENGINE = [
  ...['errors', 'options', 'context', 'usage'].map((file) => `src/engine/${file}.ts`),
  ...OF_ALL,
]
/**
 * What each layer may import besides itself. A path belongs to the first layer that contains it. A slash at
 * the end includes all layers below.
 */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  'src/model': [],
  'src/core': ['src/model'],
  'src/runtime': ['src/model'],
  'src/storage': ['src/runtime', 'src/core', 'src/model'],
  'src/sync': ['src/storage', 'src/core', 'src/model'],
  'src/api': ['src/sync', ...OF_ALL],
  'src/engine/errors.ts': OF_ALL,
  'src/engine/log': ['src/engine/errors.ts', 'src/api', ...OF_ALL],
  'src/engine/encryption': ['src/engine/errors.ts', 'src/engine/log', ...OF_ALL],
  'src/engine/streams': ['src/engine/log', ...OF_ENGINE],
  'src/engine/service': ['src/engine/streams', 'src/engine/log', 'src/api', ...OF_ENGINE],
  'src/engine/access': ['src/engine/service', 'src/engine/streams', 'src/api', ...OF_ENGINE],
  'src/engine/usage.ts': OF_ALL,
  'src/engine/options.ts': ['src/engine/encryption', 'src/engine/usage.ts', ...OF_ALL],
  'src/engine/context.ts': [
    'src/engine/errors.ts',
    'src/engine/options.ts',
    'src/engine/usage.ts',
    ...OF_ALL,
  ],
  'src/engine/api': [
    'src/engine/access',
    'src/engine/service',
    'src/engine/streams',
    'src/engine/log',
    'src/api',
    ...OF_ENGINE,
  ],
  'src/engine': ['src/engine/', 'src/api', ...OF_ALL],
  'src/usage': ['src/engine/usage.ts', ...OF_ALL],
  'src/wire': OF_ALL,
  'src/index.ts': ['src/wire', 'src/engine', 'src/engine/', 'src/api', ...OF_ALL],
}

const OF_STORAGES = ['src/']
/** The engine by its public API only. */
const OF_THE_API = ['src/index.ts', 'src/wire', 'src/sync', 'src/runtime', 'src/model']
/** Nothing of the engine, which would make a client several times as large. */
const OF_CLIENTS = ['src/api', 'src/wire', ...OF_ALL]
const OF_STREAMS = ['src/sync', 'src/api', ...OF_ALL]
const ADAPTERS: Readonly<Record<string, readonly string[]>> = {
  'adapters/storage/memory': OF_STORAGES,
  'adapters/storage/indexeddb': ['adapters/storage/key-value', ...OF_STORAGES],
  'adapters/storage/sqlite': OF_STORAGES,
  'adapters/storage/key-value': OF_STORAGES,
  'adapters/storage/index.ts': ['adapters/storage/key-value', 'src/'],
  'adapters/storage/media': OF_STORAGES,
  'adapters/storage/log': ['adapters/storage/media', ...OF_STORAGES],
  'adapters/storage/filesystem': ['adapters/storage/log', 'adapters/storage/media', ...OF_STORAGES],
  'adapters/storage/postgres': OF_STORAGES,
  'adapters/storage/s3': ['adapters/storage/log', 'adapters/storage/media', ...OF_STORAGES],
  'adapters/testing': ['src/'],
  'adapters/conformance': ['src/'],
  'adapters/aegis-256': ['src/'],
  'adapters/stream-view': OF_THE_API,
  'adapters/react': ['adapters/stream-view', ...OF_THE_API],
  'adapters/vue': ['adapters/stream-view', ...OF_THE_API],
  'adapters/svelte': ['adapters/stream-view', ...OF_THE_API],
  'adapters/solid': ['adapters/stream-view', ...OF_THE_API],
  'adapters/sync': OF_STREAMS,
  'adapters/fold': OF_STREAMS,
  'adapters/browser': ['adapters/client', 'adapters/storage/', 'src/'],
  'adapters/client/node': ['adapters/client', ...OF_CLIENTS],
  'adapters/client': ['adapters/client/node', ...OF_CLIENTS],
  // The document that it serves.
  'adapters/http': ['docs/openapi.yaml?json', ...OF_THE_API],
  'adapters/durable-streams': ['adapters/http', ...OF_THE_API],
  'adapters/node': ['adapters/http', 'adapters/durable-streams', ...OF_THE_API],
  'adapters/console': ['adapters/http', 'adapters/client', ...OF_CLIENTS],
  'adapters/transfer': ['src/'],
  'adapters/resources': ['src/'],
  'adapters/cli': ['adapters/', 'src/'],
}
const ALL_LAYERS = { ...LAYERS, ...ADAPTERS }

/** These need Node, or a server. Browsers load the rest. */
const NOT_IN_BROWSERS = [
  'adapters/storage/filesystem',
  'adapters/storage/log',
  'adapters/storage/media',
  'adapters/storage/postgres',
  'adapters/storage/s3',
  'adapters/client/node',
  'adapters/node',
  'adapters/transfer',
  'adapters/resources',
  'adapters/conformance',
  'adapters/cli',
]
const SERVER_PACKAGES = new Set([
  'ajv',
  'aws4fetch',
  'cli-progress',
  'commander',
  'pg',
  'yaml',
  ...builtinModules,
])

describe('the modules of src and adapters', () => {
  let modules: readonly SourceModule[]
  beforeAll(() => {
    modules = [...readSources(ROOT, ['src', 'adapters'])].map(([path, text]) => parseModule(path, text))
  })

  it('import downwards only', () => {
    expect(modules.length).toBeGreaterThan(300)
    const wrong = modules.flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => !isPackage(target) && !mayImport(path, target))
        .map(({ target }) => `${path} imports ${target}`),
    )
    expect(wrong).toEqual([])
  })

  it('import nothing in a cycle, types included', () => {
    const targetsOf = new Map(modules.map(({ path, imports }) => [path, imports.map(({ target }) => target)]))
    const done = new Set<string>()
    const cycles: string[] = []
    const visit = (path: string, from: readonly string[]): void => {
      if (from.includes(path)) cycles.push([...from.slice(from.indexOf(path)), path].join(' -> '))
      if (done.has(path)) return
      done.add(path)
      for (const target of targetsOf.get(path) ?? []) visit(target, [...from, path])
    }
    for (const path of targetsOf.keys()) visit(path, [])
    expect(cycles).toEqual([])
  })

  it('need no server packages where browsers load them', () => {
    const wrong = modules.flatMap(({ path, imports }) =>
      imports
        .filter(({ isTypeOnly, target }) => !isTypeOnly && isPackage(target))
        .map(({ target }) => target.replace('node:', '').split('/')[0]!)
        .filter((name) => SERVER_PACKAGES.has(name) && isForBrowsers(path))
        .map((name) => `${path} imports ${name}`),
    )
    expect(wrong).toEqual([])
  })
})

function layerOf(path: string): string | undefined {
  return Object.keys(ALL_LAYERS).find((layer) => path === layer || path.startsWith(`${layer}/`))
}

function isPackage(target: string): boolean {
  return !/^(\.\.|src|adapters|test|bench|examples|docs|proto)\//.test(target)
}

function mayImport(path: string, target: string): boolean {
  const [from, to] = [layerOf(path), layerOf(target) ?? target]
  if (from === undefined || from === to) return from === to
  return ALL_LAYERS[from]!.some((allowed) =>
    allowed.endsWith('/') ? to.startsWith(allowed) : to === allowed,
  )
}

function isForBrowsers(path: string): boolean {
  return !NOT_IN_BROWSERS.some((layer) => path.startsWith(`${layer}/`))
}
