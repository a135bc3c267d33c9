// Shortens what refers to the modules of the build: as bundled, that is a fiftieth of the package.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeMappings, encodeMappings } from './source-maps.mjs'

/**
 * A chunk that entries share, or a module that is loaded on demand. Builds of apps name the zstd module, so
 * its name stays.
 */
const HASHED = /(?<=[/"=]|^)(?!zstd-)([a-z][\w-]*)-[A-Z0-9]{8}(?=\.js\b)/g
const WITHOUT_NAMES = /^import "\.\/chunk-[A-Z0-9]{8}\.js";$/

/**
 * Removes imports of chunks for their effects. esbuild adds them to keep the order in which modules run. No
 * module of the package has effects, as `sideEffects` in package.json states. Moves the lines of the source
 * map too.
 */
export function withoutBareImports(code, map) {
  const lines = code.split('\n')
  const kept = [...lines.keys()].filter((index) => !WITHOUT_NAMES.test(lines[index]))
  const mappings = decodeMappings(map.mappings)
  return {
    code: kept.map((index) => lines[index]).join('\n'),
    map: { ...map, mappings: encodeMappings(kept.map((index) => mappings[index] ?? [])) },
  }
}

/**
 * Renames the modules of a directory whose names have hashes, and changes what imports them. Bundlers add
 * hashes of their own to the names of modules that are loaded on demand.
 */
export function renameModules(directory) {
  const files = readdirSync(directory)
  const names = new Map()
  const taken = new Set(files)
  for (const file of files.filter((name) => name.endsWith('.js')).sort()) {
    for (const [hashed, name] of file.matchAll(HASHED)) {
      let short = name === 'chunk' ? 'chunk-1' : name
      for (let number = 1; taken.has(`${short}.js`); number++) short = `${name}-${number}`
      taken.add(`${short}.js`)
      names.set(hashed, short)
    }
  }
  const renamed = (text) => text.replace(HASHED, (hashed) => names.get(hashed) ?? hashed)
  for (const file of files.filter((name) => /\.js(\.map)?$/.test(name))) {
    const path = join(directory, file)
    if (file.endsWith('.js')) writeFileSync(path, renamed(readFileSync(path, 'utf8')))
    renameSync(path, join(directory, renamed(file)))
  }
}
