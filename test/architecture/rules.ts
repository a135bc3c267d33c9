import { builtinModules } from 'node:module'
import { importCycles } from './cycles.ts'
import type { SourceModule } from './source-module.ts'

/**
 * What each layer may import besides itself; a trailing slash includes all layers below. A path belongs to
 * the first layer that contains it; a path in no layer is a violation.
 */
const SRC_LAYERS: Readonly<Record<string, readonly string[]>> = {
  'src/model': [],
  'src/core': ['src/model'],
  'src/runtime': ['src/model'],
  'src/storage': ['src/runtime', 'src/core', 'src/model'],
  'src/sync': ['src/storage', 'src/core', 'src/model'],
  'src/api': ['src/sync', 'src/storage', 'src/runtime', 'src/core', 'src/model'],
  'src/engine/log': ['src/api', 'src/storage', 'src/runtime', 'src/core', 'src/model'],
  'src/engine/encryption': ['src/engine/log', 'src/storage', 'src/runtime', 'src/core', 'src/model'],
  'src/engine/service': ['src/engine/log', 'src/api', 'src/storage', 'src/runtime', 'src/core', 'src/model'],
  'src/engine/api': [
    'src/engine/service',
    'src/engine/log',
    'src/api',
    'src/storage',
    'src/runtime',
    'src/core',
    'src/model',
  ],
  'src/engine': ['src/engine/', 'src/api', 'src/storage', 'src/runtime', 'src/core', 'src/model'],
  'src/usage': ['src/engine/service', 'src/storage', 'src/runtime', 'src/core', 'src/model'],
  'src/wire': ['src/storage', 'src/runtime', 'src/core', 'src/model'],
  'src/index.ts': [
    'src/wire',
    'src/engine',
    'src/engine/',
    'src/api',
    'src/storage',
    'src/runtime',
    'src/core',
    'src/model',
  ],
}
/** What an adapter may import besides itself and `src`. */
const ADAPTERS: Readonly<Record<string, readonly string[]>> = {
  'adapters/storage/memory': [],
  'adapters/storage/indexeddb': [],
  'adapters/storage/durable-object': [],
  'adapters/storage/filesystem': [],
  'adapters/storage/postgres': [],
  'adapters/testing': [],
  'adapters/conformance': [],
  'adapters/aegis-256': [],
  'adapters/stream-view': [],
  'adapters/react': ['adapters/stream-view'],
  'adapters/vue': ['adapters/stream-view'],
  'adapters/svelte': ['adapters/stream-view'],
  'adapters/solid': ['adapters/stream-view'],
  'adapters/sync': [],
  'adapters/fold': [],
  'adapters/browser': ['adapters/storage/'],
  'adapters/client/node': ['adapters/client'],
  'adapters/client': ['adapters/client/node'],
  // The document that it serves.
  'adapters/http': ['docs/openapi.yaml?json'],
  'adapters/durable-streams': ['adapters/http'],
  'adapters/node': ['adapters/http', 'adapters/durable-streams'],
  'adapters/console': ['adapters/http', 'adapters/client'],
  'adapters/transfer': [],
  'adapters/cli': [
    'adapters/durable-streams',
    'adapters/http',
    'adapters/node',
    'adapters/console',
    'adapters/storage/',
    'adapters/aegis-256',
    'adapters/transfer',
    'adapters/client',
  ],
}
/** Adapters that use the engine only through its public API, and the layers of `src` that they may import. */
const ON_PUBLIC_API: readonly string[] = [
  'adapters/http',
  'adapters/durable-streams',
  'adapters/node',
  'adapters/stream-view',
  'adapters/react',
  'adapters/vue',
  'adapters/svelte',
  'adapters/solid',
]
const PUBLIC_LAYERS: readonly string[] = ['src/index.ts', 'src/wire', 'src/sync', 'src/runtime', 'src/model']
/** Adapters that speak the wire protocol with a server. */
const CLIENTS: readonly string[] = ['adapters/client', 'adapters/client/node', 'adapters/console']
/** What a client may import of `src`: nothing of the engine, which would make it several times as large. */
const CLIENT_LAYERS: readonly string[] = [
  'src/api',
  'src/wire',
  'src/storage',
  'src/runtime',
  'src/core',
  'src/model',
]
/** Adapters that work on any `Stream`, and what they may import of `src`: nothing of the engine either. */
const ON_STREAMS: readonly string[] = ['adapters/sync', 'adapters/fold']
const STREAM_LAYERS: readonly string[] = [
  'src/sync',
  'src/api',
  'src/storage',
  'src/runtime',
  'src/core',
  'src/model',
]
/** Layers of pure functions: no packages, clocks, randomness or asynchrony. */
const PURE_LAYERS = ['src/model', 'src/core', 'src/sync']
/** All of `src` runs in a browser, and these adapters. */
const BROWSER_LAYERS = [
  ...Object.keys(SRC_LAYERS),
  ...[
    'adapters/storage/memory',
    'adapters/storage/indexeddb',
    'adapters/storage/durable-object',
    'adapters/client',
    'adapters/http',
    'adapters/durable-streams',
    'adapters/testing',
    'adapters/aegis-256',
    'adapters/stream-view',
    'adapters/react',
    'adapters/vue',
    'adapters/svelte',
    'adapters/solid',
    'adapters/sync',
    'adapters/fold',
    'adapters/console',
    'adapters/browser',
  ],
]
/** A layer that browsers never load, although others import it: only by `import()`, in Node. */
const NODE_LAYER = 'adapters/client/node'
const SERVER_PACKAGES = ['cli-progress', 'pg', ...builtinModules]
/** Loaded for their types only. */
const TYPE_PACKAGES = ['rxjs']
const LINES_MAX = 400
/**
 * The number of modules of a layer that may be part of an import cycle; 0 for all others. These numbers may
 * only decrease.
 */
const CYCLE_MODULES_MAX: Readonly<Record<string, number>> = {}
const GENERATED = 'src/wire/gen/'
const STORAGES = 'adapters/storage/'
/** What a storage can be made of: its module is `headwater/storage`. */
const STORAGE_KIT = 'src/storage/index.ts'
/**
 * Further modules of `src` that files of the built-in storages may import, each with the reason why it is not
 * part of {@link STORAGE_KIT}.
 */
export const STORAGE_EXCEPTIONS: readonly {
  readonly files: string
  readonly target: string
  readonly reason: string
}[] = [
  {
    files: 'adapters/storage/filesystem/verify/document-check.ts',
    target: 'src/storage/documents.ts',
    reason: 'Verification checks the documents of the engine, which are opaque to a storage.',
  },
  {
    files: 'adapters/storage/filesystem/verify/document-check.ts',
    target: 'src/model/names.ts',
    reason: 'Verification checks the names in the documents of the engine.',
  },
  {
    files: 'adapters/storage/filesystem/verify/',
    target: 'src/storage/sealed-block.ts',
    reason: 'Verification decodes blocks, which are opaque to a storage.',
  },
  {
    files: 'adapters/storage/filesystem/verify/',
    target: 'src/storage/block-codec.ts',
    reason: 'Verification decodes blocks, which are opaque to a storage.',
  },
  {
    files: 'adapters/storage/filesystem/verify/',
    target: 'src/model/record.ts',
    reason: 'Verification meters the records of blocks.',
  },
  {
    files: 'adapters/storage/filesystem/verify/scan.ts',
    target: 'src/model/config.ts',
    reason: 'Verification checks that the blocks of a stream have its cipher.',
  },
  {
    files: 'adapters/storage/filesystem/verify/verify-directory.ts',
    target: 'src/model/validation.ts',
    reason: 'It takes an `AbortSignal`, which the options of a storage do not.',
  },
  {
    files: 'adapters/storage/memory/log-rows.ts',
    target: 'src/storage/append-ids.ts',
    reason: 'It splits append ids as the engine draws them, which are opaque to other storages.',
  },
  {
    files: 'adapters/storage/indexeddb/space.ts',
    target: 'src/runtime/observable.ts',
    reason: 'It is the class of observables, which is no part of a storage.',
  },
]

/** Describes every violation of the architecture rules. */
export function violations(modules: readonly SourceModule[]): string[] {
  return [
    ...modules.flatMap(layerViolations),
    ...modules.flatMap(purityViolations),
    ...modules.flatMap(typePackageViolations),
    ...modules.flatMap(lengthViolations),
    ...cycleViolations(modules),
    ...browserViolations(modules),
    ...storageViolations(modules),
  ]
}

function layerOf(path: string): string | undefined {
  const layers = [...Object.keys(SRC_LAYERS), ...Object.keys(ADAPTERS)]
  return layers.find((layer) => path === layer || path.startsWith(`${layer}/`))
}

function isPackage(target: string): boolean {
  return !/^(\.\.\/|src\/|adapters\/|test\/|bench\/|examples\/|docs\/|proto\/)/.test(target)
}

function mayImport(from: string, to: string): boolean {
  if (from === to) return true
  if (!(from in SRC_LAYERS) && to in SRC_LAYERS) {
    if (CLIENTS.includes(from)) return CLIENT_LAYERS.includes(to)
    if (ON_STREAMS.includes(from)) return STREAM_LAYERS.includes(to)
    return !ON_PUBLIC_API.includes(from) || PUBLIC_LAYERS.includes(to)
  }
  const targets = SRC_LAYERS[from] ?? ADAPTERS[from]!
  return targets.some((allowed) => (allowed.endsWith('/') ? to.startsWith(allowed) : to === allowed))
}

function layerViolations({ path, imports }: SourceModule): string[] {
  const layer = layerOf(path)
  if (layer === undefined) return [`${path} is in no layer`]
  return imports.flatMap(({ target }) => {
    if (isPackage(target)) return PURE_LAYERS.includes(layer) ? [`${path} imports the package ${target}`] : []
    return mayImport(layer, layerOf(target) ?? target) ? [] : [`${path} imports ${target}`]
  })
}

function purityViolations({ path, impurities }: SourceModule): string[] {
  const isPure = PURE_LAYERS.includes(layerOf(path) ?? '')
  return isPure ? impurities.map((impurity) => `${path} uses ${impurity}`) : []
}

function typePackageViolations({ path, imports }: SourceModule): string[] {
  return imports
    .filter(({ target, isTypeOnly }) => !isTypeOnly && TYPE_PACKAGES.includes(target.split('/')[0]!))
    .map(({ target }) => `${path} imports more than types of ${target}`)
}

function lengthViolations({ path, lines }: SourceModule): string[] {
  return lines > LINES_MAX && !path.startsWith(GENERATED) ? [`${path} has ${lines} lines`] : []
}

function cycleViolations(modules: readonly SourceModule[]): string[] {
  const cycles = [...importCycles(modules)]
  return cycles.flatMap(([path, cycle]) => {
    const layer = layerOf(path)
    const count = cycles.filter(([other]) => layerOf(other) === layer).length
    const allowed = CYCLE_MODULES_MAX[layer ?? ''] ?? 0
    return count > allowed ? [`${path} is in an import cycle: ${cycle.join(' -> ')}`] : []
  })
}

function browserViolations(modules: readonly SourceModule[]): string[] {
  const byPath = new Map(modules.map((module) => [module.path, module]))
  const entries = modules
    .map(({ path }) => path)
    .filter((path) => BROWSER_LAYERS.includes(layerOf(path) ?? ''))
  return reachable(entries, byPath).flatMap(({ path, imports }) =>
    imports
      .filter(({ target, isTypeOnly }) => !isTypeOnly && isServerOnly(target))
      .map(({ target }) => `${path} brings ${target} into the browser`),
  )
}

/** A storage imports only what authors of other storages can import, so that the kit is complete. */
function storageViolations(modules: readonly SourceModule[]): string[] {
  const kit = modules.find(({ path }) => path === STORAGE_KIT)
  if (kit === undefined) return []
  const isInKit = (target: string, { name, isTypeOnly }: SourceModule['imports'][number]['names'][number]) =>
    kit.reExports
      .filter((exported) => exported.target === target)
      .flatMap(({ names }) => names)
      .some(
        (exported) =>
          (exported.name === name || exported.name === '*') && (isTypeOnly || !exported.isTypeOnly),
      )
  return modules
    .filter(({ path }) => path.startsWith(STORAGES))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => target.startsWith('src/') && target !== STORAGE_KIT)
        .filter(({ target }) => !isException(path, target))
        .flatMap(({ target, names }) =>
          names
            .filter((name) => !isInKit(target, name))
            .map(
              ({ name }) => `${path} imports ${name} of ${target}, which headwater/storage does not export`,
            ),
        ),
    )
}

function isException(path: string, target: string): boolean {
  return STORAGE_EXCEPTIONS.some(
    ({ files, target: exception }) => path.startsWith(files) && target === exception,
  )
}

function isServerOnly(target: string): boolean {
  if (target.startsWith('node:')) return true
  return isPackage(target) && SERVER_PACKAGES.some((name) => target === name || target.startsWith(`${name}/`))
}

function reachable(
  entries: readonly string[],
  byPath: ReadonlyMap<string, SourceModule>,
): readonly SourceModule[] {
  const visited = new Set<SourceModule>()
  const waiting = [...entries]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const module = byPath.get(path)
    if (module === undefined || visited.has(module)) continue
    visited.add(module)
    for (const { target, isTypeOnly, isDynamic } of module.imports) {
      const isOnlyInNode = isDynamic === true && layerOf(target) === NODE_LAYER
      if (!isTypeOnly && !isOnlyInNode) waiting.push(target)
    }
  }
  return [...visited]
}
