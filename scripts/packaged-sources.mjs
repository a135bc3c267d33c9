// Which sources are part of the package: those that `files` in package.json lists.
import { readFileSync } from 'node:fs'
import { inProject } from './project.mjs'

const { files } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
const listed = files.filter((path) => /^(src|adapters)\b/.test(path))

/** Whether a file of the project, by its path, is a source that the package contains. */
export function isPackagedSource(path) {
  const normalized = path.replaceAll('\\', '/')
  return listed.some((entry) => normalized === entry || normalized.startsWith(`${entry}/`))
}
