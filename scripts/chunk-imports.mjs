// Shortens what refers to the chunks of the build: as bundled, that is a fiftieth of the package.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeMappings, encodeMappings } from './source-maps.mjs'

const CHUNK = /\bchunk-[A-Z0-9]{8}(?=\.js\b)/g
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

/** Numbers the chunks of a directory, whose names have hashes, and changes what imports them. */
export function numberChunks(directory) {
  const names = readdirSync(directory).filter((name) => /\.js(\.map)?$/.test(name))
  const chunks = new Set(names.flatMap((name) => name.match(CHUNK) ?? []))
  const numbered = new Map([...chunks].sort().map((chunk, index) => [chunk, `chunk-${index + 1}`]))
  const shortened = (text) => text.replace(CHUNK, (chunk) => numbered.get(chunk) ?? chunk)
  for (const name of names) {
    const path = join(directory, name)
    if (name.endsWith('.js')) writeFileSync(path, shortened(readFileSync(path, 'utf8')))
    renameSync(path, join(directory, shortened(name)))
  }
}
