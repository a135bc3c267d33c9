// The last step of `npm run build`: writes the declarations of the entries in package.json, and of the files
// that these import, to `dist/types`, with maps that lead editors to the sources in the package. With
// `--check`, which npm runs before it packs, fails if they are missing: `npm run build:js` writes none.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { inProject } from './project.mjs'

const { exports } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
const { config } = ts.readConfigFile(inProject('tsconfig.json'), ts.sys.readFile)
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, inProject('.'))
const entries = Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : [inProject(types)]))
if (process.argv[2] === '--check') {
  const missing = entries.find((path) => !existsSync(path))
  if (missing === undefined) process.exit()
  console.error(`${missing} does not exist; run \`npm run build\` before packing`)
  process.exit(1)
}
const sourceOf = (path) => path.replace(join('dist', 'types', '/'), '').replace(/\.d\.ts$/, '.ts')
const program = ts.createProgram(entries.map(sourceOf), {
  ...options,
  noEmit: false,
  emitDeclarationOnly: true,
  declaration: true,
  declarationMap: true,
  stripInternal: true,
  rootDir: inProject('.'),
  outDir: inProject('dist', 'types'),
})
const emitted = new Map()
const { diagnostics } = program.emit(undefined, (path, text) => emitted.set(join(path), text))
if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, ts.createCompilerHost({})))

const reachable = new Set(entries)
for (const path of reachable) {
  // TypeScript resolves names with `.js` with every `moduleResolution`.
  const text = emitted
    .get(path)
    .replace(/(\bfrom |\bimport\()(['"])(\.[^'"]*)\.tsx?\2/g, (_, from, quote, name) => {
      reachable.add(join(dirname(path), `${name}.d.ts`))
      return `${from}${quote}${name}.js${quote}`
    })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  writeFileSync(`${path}.map`, emitted.get(`${path}.map`))
}
