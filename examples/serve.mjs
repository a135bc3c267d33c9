import { join } from 'node:path'
import { startApp } from './shared/start-app.mjs'

/** Builds an example and serves it on localhost. Port 0 selects a free port. */
export function serveExample(name, port) {
  return startApp(join(import.meta.dirname, name), port)
}
