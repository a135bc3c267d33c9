// `npm run check:api` compares the declarations with the reports in `api`, one for each subpath of the
// package, so that a review shows each change of the public API. With --write, it updates the reports.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiReports } from './api-reports.mjs'
import { inProject, run } from './project.mjs'

const DIRECTORY = inProject('api')
const { exports } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))

run(process.execPath, [inProject('scripts', 'declarations.mjs')])
const entries = Object.entries(exports).flatMap(([subpath, { types }]) =>
  types === undefined ? [] : [[`headwater${subpath.slice(1)}`, inProject(types)]],
)
const reports = new Map(
  [...apiReports(entries)].map(([name, text]) => [`${name.replace('/', '-')}.api.md`, text]),
)
const written = existsSync(DIRECTORY) ? readdirSync(DIRECTORY) : []
if (process.argv.includes('--write')) {
  mkdirSync(DIRECTORY, { recursive: true })
  for (const name of written) if (!reports.has(name)) rmSync(join(DIRECTORY, name))
  for (const [name, text] of reports) writeFileSync(join(DIRECTORY, name), text)
} else {
  const changed = [...new Set([...reports.keys(), ...written])].filter(
    (name) => !written.includes(name) || readFileSync(join(DIRECTORY, name), 'utf8') !== reports.get(name),
  )
  for (const name of changed) console.error(`api/${name} does not match the declarations`)
  if (changed.length > 0) {
    console.error('run `npm run check:api -- --write`, and review the difference')
    process.exitCode = 1
  }
}
