import { parseArgs } from 'node:util'

// What a browser stores belongs to the address, port included: each example has its own, and the same each time.
const PORTS = { 'local-first-chat': 8788, 'published-client': 8789 }

export const USAGE = `usage: npm run example -- NAME [--port PORT]\nexamples: ${Object.keys(PORTS).join(', ')}`

/** Undefined when they make no sense. */
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
