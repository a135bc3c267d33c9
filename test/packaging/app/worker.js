import { run } from './run.js'

run().then(
  (result) => postMessage({ result }),
  (error) => postMessage({ error: String(error.stack) }),
)
