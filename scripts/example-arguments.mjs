import { parseArgs } from 'node:util'

// Browsers store data by origin, which includes the port, so each example has a fixed port of its own.
const PORTS = {
  'resumable-chat': 8791,
  'local-first-chat': 8788,
  'shared-todo': 8790,
  'live-logs': 8794,
  'work-queue': 8795,
  'live-query': 8792,
  'shared-document': 8793,
  'published-client': 8789,
}

export const USAGE = `usage: npm run example -- NAME [--port PORT]\nexamples: ${Object.keys(PORTS).join(', ')}`

/** Returns undefined if the arguments are invalid. */
export function exampleArguments(args) {
  try {
    const { positionals, values } = parseArgs({
      args,
      allowPositionals: true,
      options: { port: { type: 'string' } },
    })
    const [name] = positionals
    if (positionals.length !== 1 || !Object.hasOwn(PORTS, name)) return undefined
    const port = Number(values.port ?? PORTS[name])
    return Number.isInteger(port) && port >= 0 && port <= 65_535 ? { name, port } : undefined
  } catch {
    return undefined
  }
}
