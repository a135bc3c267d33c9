// The last step of `npm run build`: writes the declarations of the entries in package.json to `dist/types`, a
// file for each source file, with declaration maps. Only what the entries export is declared, and what that
// refers to.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import ts from 'typescript'
import { NeededDeclarations } from './needed-declarations.mjs'
import { isPackagedSource } from './packaged-sources.mjs'
import { inProject } from './project.mjs'
import { decodeMappings, encodeMappings } from './source-maps.mjs'

const TYPES = inProject('dist', 'types')
/** The library of `Symbol.asyncDispose`, which no stable `lib` includes. */
const DISPOSABLE = '/// <reference lib="esnext.disposable" />'

const emitted = emitDeclarations()
const entries = Object.values(JSON.parse(readFileSync(inProject('package.json'), 'utf8')).exports)
const needed = new NeededDeclarations(emitted)
for (const { types } of entries) if (types !== undefined) needed.addAll(inProject(types))
for (const file of needed.files()) writeDeclarations(file)

/** The text of each declaration file and each map, by path. */
function emitDeclarations() {
  const { config } = ts.readConfigFile(inProject('tsconfig.json'), ts.sys.readFile)
  const { options, fileNames } = ts.parseJsonConfigFileContent(
    { ...config, include: ['src', 'adapters'] },
    ts.sys,
    inProject('.'),
    {
      noEmit: false,
      emitDeclarationOnly: true,
      declaration: true,
      declarationMap: true,
      stripInternal: true,
      rootDir: inProject('.'),
      outDir: TYPES,
    },
  )
  const program = ts.createProgram(fileNames, options)
  const files = new Map()
  const { diagnostics } = program.emit(undefined, (path, text) => files.set(join(path), text))
  if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, formatHost()))
  return files
}

function formatHost() {
  return {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => inProject('.'),
    getNewLine: () => '\n',
  }
}

/** Reduces mappings to where the names of declarations begin, which is where editors go: a sixth of them. */
function mappingsOfNames(declarations, mappings) {
  const file = ts.createSourceFile('file.d.ts', declarations, ts.ScriptTarget.Latest)
  const kept = mappings.map(() => new Set())
  const keep = (position) => {
    const { line, character } = file.getLineAndCharacterOfPosition(position)
    kept[line]?.add(character)
  }
  const visit = (node) => {
    if (node.name !== undefined && !ts.isParameter(node)) {
      keep(node.name.getStart(file))
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return mappings.map((segments, line) => segments.filter(({ column }) => kept[line].has(column)))
}

/** Writes a file without the declarations that are not needed, and its map. */
function writeDeclarations(file) {
  const lines = file.keptLines()
  const text = lines.map(({ text }) => text)
  const map = JSON.parse(emitted.get(`${file.path}.map`))
  const source = relative(inProject('.'), join(dirname(file.path), map.sources[0]))
  const mappings = mappingsOfNames(emitted.get(file.path), decodeMappings(map.mappings))
  const kept = lines.map(({ text, index }) => (file.isRewritten(text, index) ? [] : (mappings[index] ?? [])))
  if (text.some((line) => /\bsymbol\.(async)?dispose\b/i.test(line))) {
    text.unshift(DISPOSABLE)
    kept.unshift([])
  }
  mkdirSync(dirname(file.path), { recursive: true })
  if (!isPackagedSource(source.replaceAll(sep, '/'))) {
    writeFileSync(file.path, text.filter((line) => !line.startsWith('//# sourceMappingURL=')).join('\n'))
    return
  }
  writeFileSync(file.path, text.join('\n'))
  // A language server ignores a map without `file`.
  writeFileSync(`${file.path}.map`, JSON.stringify({ ...map, mappings: encodeMappings(kept) }))
}
