import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

interface Import {
  /** A path from the root of the repository, or the name of a package. */
  readonly target: string
  /** Erased when the code is built. */
  readonly isTypeOnly: boolean
  /** Loaded by `import()`, when it is first needed. */
  readonly isDynamic: boolean
}

export interface SourceModule {
  readonly path: string
  readonly imports: readonly Import[]
}

/** Every TypeScript file of these directories, by its path from the root. */
export function readSources(root: string, directories: readonly string[]): Map<string, string> {
  const sources = new Map<string, string>()
  for (const directory of directories) {
    for (const entry of readdirSync(`${root}/${directory}`, { recursive: true, encoding: 'utf8' })) {
      const path = posix.join(directory, entry.replaceAll('\\', '/'))
      if (/\.tsx?$/.test(path)) sources.set(path, readFileSync(`${root}/${path}`, 'utf8'))
    }
  }
  return sources
}

const COMMENTS = /^\s*(?:\/?\*|\/\/).*$/gm
/** Statements begin a line, as the formatter writes them. */
const STATIC = /^(?:import|export)(\s+type)?\s*(?:[\w$*{},\s]*?\bfrom\s*)?'([^']+)'/gm
const DYNAMIC = /(typeof\s+)?\bimport\(\s*'([^']+)'\)(\.[A-Z])?/g

/** The imports and re-exports of a module, types included. */
export function parseModule(path: string, text: string): SourceModule {
  const code = text.replace(COMMENTS, '')
  const targetOf = (specifier: string) =>
    specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier
  const statements = [...code.matchAll(STATIC)].map(([, type, specifier]) => {
    return { target: targetOf(specifier!), isTypeOnly: type !== undefined, isDynamic: false }
  })
  const calls = [...code.matchAll(DYNAMIC)].map(([, typeOf, specifier, member]) => {
    const isTypeOnly = typeOf !== undefined || member !== undefined
    return { target: targetOf(specifier!), isTypeOnly, isDynamic: !isTypeOnly }
  })
  return { path, imports: [...statements, ...calls] }
}
