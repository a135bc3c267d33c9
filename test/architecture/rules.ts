import { builtinModules } from 'node:module'
import type { SourceModule } from './source-module.ts'

/** What each room may import besides itself. A room that is not listed is a violation: name it here first. */
const SRC_ROOMS: Readonly<Record<string, readonly string[]>> = {
  'src/model': [],
  'src/core': ['src/model'],
  'src/storage': ['src/core', 'src/model'],
  'src/engine': ['src/storage', 'src/core', 'src/model'],
  'src/wire': ['src/storage', 'src/core', 'src/model'],
  'src/index.ts': ['src/wire', 'src/engine', 'src/storage', 'src/core', 'src/model'],
}
/** What an adapter may import besides itself and `src`; a slash at the end stands for all below. */
const ADAPTERS: Readonly<Record<string, readonly string[]>> = {
  'adapters/storage/memory': [],
  'adapters/storage/indexeddb': [],
  'adapters/storage/filesystem': [],
  'adapters/storage/postgres': [],
  'adapters/testing': [],
  'adapters/aegis-256': [],
  'adapters/http': [],
  'adapters/node': ['adapters/http'],
  'adapters/console': ['adapters/http'],
  'adapters/transfer': [],
  'adapters/cli': [
    'adapters/http',
    'adapters/node',
    'adapters/storage/',
    'adapters/aegis-256',
    'adapters/transfer',
  ],
}
/** Rooms that decide, without packages, time, chance or asynchrony. */
const PURE_ROOMS = ['src/model', 'src/core']
/** All of `src` runs in a browser, and these adapters. */
const BROWSER_ROOMS = [
  ...Object.keys(SRC_ROOMS),
  ...[
    'adapters/storage/memory',
    'adapters/storage/indexeddb',
    'adapters/http',
    'adapters/testing',
    'adapters/aegis-256',
  ],
]
const SERVER_PACKAGES = ['srvx', 'citty', 'pg', ...builtinModules]
const LINES_MAX = 400
const GENERATED = 'src/wire/gen/'

/** Every breach of the rules of the house, as a sentence. */
export function violations(modules: readonly SourceModule[]): string[] {
  return [
    ...modules.flatMap(roomViolations),
    ...modules.flatMap(purityViolations),
    ...modules.flatMap(lengthViolations),
    ...browserViolations(modules),
  ]
}

function roomOf(path: string): string | undefined {
  const rooms = [...Object.keys(SRC_ROOMS), ...Object.keys(ADAPTERS)]
  return rooms.find((room) => path === room || path.startsWith(`${room}/`))
}

function isPackage(target: string): boolean {
  return !/^(\.\.\/|src\/|adapters\/|test\/|bench\/|examples\/|docs\/|proto\/)/.test(target)
}

function mayImport(from: string, to: string): boolean {
  if (from === to) return true
  if (from in SRC_ROOMS) return SRC_ROOMS[from]!.includes(to)
  if (to in SRC_ROOMS) return true
  return ADAPTERS[from]!.some((allowed) => (allowed.endsWith('/') ? to.startsWith(allowed) : to === allowed))
}

function roomViolations({ path, imports }: SourceModule): string[] {
  const room = roomOf(path)
  if (room === undefined) return [`${path} is in no room`]
  return imports.flatMap(({ target }) => {
    if (isPackage(target)) return PURE_ROOMS.includes(room) ? [`${path} imports the package ${target}`] : []
    const to = roomOf(target)
    return to !== undefined && mayImport(room, to) ? [] : [`${path} imports ${target}`]
  })
}

function purityViolations({ path, impurities }: SourceModule): string[] {
  const isPure = PURE_ROOMS.includes(roomOf(path) ?? '')
  return isPure ? impurities.map((impurity) => `${path} uses ${impurity}`) : []
}

function lengthViolations({ path, lines }: SourceModule): string[] {
  return lines > LINES_MAX && !path.startsWith(GENERATED) ? [`${path} has ${lines} lines`] : []
}

function browserViolations(modules: readonly SourceModule[]): string[] {
  const byPath = new Map(modules.map((module) => [module.path, module]))
  const entries = modules.map(({ path }) => path).filter((path) => BROWSER_ROOMS.includes(roomOf(path) ?? ''))
  return reachable(entries, byPath).flatMap(({ path, imports }) =>
    imports
      .filter(({ target, isTypeOnly }) => !isTypeOnly && isServerOnly(target))
      .map(({ target }) => `${path} brings ${target} into the browser`),
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
  const reached = new Set<SourceModule>()
  const waiting = [...entries]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const module = byPath.get(path)
    if (module === undefined || reached.has(module)) continue
    reached.add(module)
    for (const { target, isTypeOnly } of module.imports) if (!isTypeOnly) waiting.push(target)
  }
  return [...reached]
}
