import { arrayOf, required } from '../../../src/wire/json-members.ts'
import { parseArguments } from '../arguments.ts'
import type { Client } from '../client.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { NAME_NOTES, nameText, parseResourceName, resourcePath } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withClient } from '../target.ts'

const DEFINITIONS = {
  name: { type: 'positional', required: true, description: 'BASIN, or BASIN/STREAM; may be repeated' },
  ...TARGET_DEFINITIONS,
} as const

function parse(args: readonly string[], { env }: CliContext) {
  const parsed = parseArguments(args, DEFINITIONS, 'delete', { isVariadic: true })
  const names = parsed._.map((name) => parseResourceName(name, env))
  return { names, target: parseTarget(parsed, env) }
}

export const DELETE = command({
  name: 'delete',
  description: 'Delete streams, or basins with all their streams, without asking',
  notes: [
    'A server deletes the streams of a basin in the background; with --storage, the command waits for that.',
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  run: ({ names, target }, context) =>
    withClient({ target }, context, async (client, engine) => {
      for (const name of names) {
        const { basin, stream } = name
        const at = { path: resourcePath(name), ...(stream !== undefined && { basin }) }
        await client.send({ method: 'DELETE', ...at })
        // Closing the engine would interrupt the deletion until the storage is opened again.
        if (stream === undefined && engine !== undefined) await untilGone(client, basin, context)
        context.printError(`Deleted ${stream === undefined ? 'basin' : 'stream'} ${nameText(name)}`)
      }
    }),
})

const POLL_MS = 20

async function untilGone(client: Client, basin: string, { clock }: CliContext): Promise<void> {
  const query = new URLSearchParams({ prefix: basin, limit: '1' })
  for (;;) {
    client.signal.throwIfAborted()
    const [first] = await client.json({ method: 'GET', path: `/basins?${query}` }, (page) =>
      required(page, 'basins', arrayOf).map((item) => (item as { get(name: string): unknown }).get('name')),
    )
    if (first !== basin) return
    await new Promise<void>((resolve) => clock.schedule(POLL_MS, resolve))
  }
}
