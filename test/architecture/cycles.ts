import type { SourceModule } from './source-module.ts'

/**
 * The modules that are part of an import cycle, type imports included, each with a shortest cycle through it.
 */
export function importCycles(modules: readonly SourceModule[]): Map<string, readonly string[]> {
  const paths = new Set(modules.map(({ path }) => path))
  const targetsOf = new Map(
    modules.map(({ path, imports }) => [
      path,
      imports.map(({ target }) => target).filter((target) => paths.has(target)),
    ]),
  )
  const cycles = new Map<string, readonly string[]>()
  for (const path of paths) {
    const cycle = shortestCycle(path, targetsOf)
    if (cycle !== undefined) cycles.set(path, cycle)
  }
  return cycles
}

/** Searches breadth first from a module back to itself. */
function shortestCycle(
  start: string,
  targetsOf: ReadonlyMap<string, readonly string[]>,
): string[] | undefined {
  const importerOf = new Map<string, string>()
  const queue = [start]
  for (const path of queue) {
    for (const target of targetsOf.get(path)!) {
      if (target === start) return [...pathTo(path, start, importerOf), start]
      if (importerOf.has(target)) continue
      importerOf.set(target, path)
      queue.push(target)
    }
  }
  return undefined
}

function pathTo(last: string, start: string, importerOf: ReadonlyMap<string, string>): string[] {
  const path = [last]
  while (path[0] !== start) path.unshift(importerOf.get(path[0]!)!)
  return path
}
