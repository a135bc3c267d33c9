import { join } from 'node:path'
import { buildApp } from './shared/build-app.mjs'

/** Builds an example. Resolves to the path of the output directory. */
export function buildExample(name, output) {
  return buildApp(join(import.meta.dirname, name), output)
}
