// The last step of `npm run build`, on the declarations of the entries in package.json.
//
// Marks exports that the JavaScript does not have as types: the bundler of declarations turns
// `export type { Basin }` into `export { Basin }` if the class is in a chunk. Refers to the library of
// `Symbol.asyncDispose`, which no stable `lib` includes.
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { inProject } from './project.mjs'

const LIBRARIES = '/// <reference lib="esnext.disposable" />\n'
const { exports } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))

for (const { types, default: module } of Object.values(exports)) {
  if (types === undefined) continue
  const values = Object.keys(await import(pathToFileURL(inProject(module)).href))
  const mark = (specifier) => {
    const exported = specifier.split(' ').at(-1)
    return values.includes(exported) || specifier.startsWith('type ') ? specifier : `type ${specifier}`
  }
  const declarations = readFileSync(inProject(types), 'utf8').replace(LIBRARIES, '')
  const marked = declarations.replace(
    /^export \{ (.*) \}/gm,
    (_, specifiers) => `export { ${specifiers.split(', ').map(mark).join(', ')} }`,
  )
  writeFileSync(inProject(types), LIBRARIES + marked)
}
