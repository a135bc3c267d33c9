// `npm run example -- NAME [--port PORT]` builds an example and serves it on this machine. Works in a fresh
// clone.
import { exampleArguments, USAGE } from './example-arguments.mjs'
import { ensureBuilt, ensureInstalled } from './project.mjs'

const given = exampleArguments(process.argv.slice(2))
if (given === undefined) {
  console.error(USAGE)
  process.exit(1)
}

ensureInstalled()
ensureBuilt()

const { serveExample } = await import('../examples/serve.mjs')
const { closeOnSignal } = await import('../examples/shared/start-app.mjs')
try {
  const app = await serveExample(given.name, given.port)
  closeOnSignal(app)
  console.log(`${given.name} is at ${app.url} (press Ctrl-C to stop it)`)
} catch (error) {
  console.error(`${given.name} could not be served: ${error.message}`)
  process.exit(1)
}
