import type { Headwater } from '../../../src/index.ts'
import { parseArguments } from '../arguments.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { NAME_NOTES, nameText, parseResourceName, resourceOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withHeadwater } from '../target.ts'

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
    withHeadwater({ target }, context, async (hw, { signal }) => {
      for (const name of names) {
        const { basin, stream } = name
        await resourceOf(hw, name).delete()
        // Closing the engine would interrupt the deletion until the storage is opened again.
        if (stream === undefined && target.kind !== 'service') await untilGone(hw, basin, context, signal)
        context.printError(`Deleted ${stream === undefined ? 'basin' : 'stream'} ${nameText(name)}`)
      }
    }),
})

const POLL_MS = 20

async function untilGone(
  hw: Headwater,
  basin: string,
  { clock }: CliContext,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const { items } = await hw.listBasins({ prefix: basin, limit: 1 })
    if (items[0]?.name !== basin) return
    await new Promise<void>((resolve) => clock.schedule(POLL_MS, resolve))
  }
}
