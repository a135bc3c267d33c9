import { createInterface } from 'node:readline'
import type { Headwater } from '../../../src/index.ts'
import { command, flag, positional } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError } from '../errors.ts'
import { nameText, parseResourceName, resourceOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'

export const DELETE = command({
  description: 'Delete streams, or basins with all their streams',
  examples: ['headwater delete app-logs/web/1 app-logs/web/2', 'headwater delete app-logs'],
  notes: [
    'Asks first if standard input is a terminal.',
    'A server deletes the streams of a basin in the background; with --storage, the command waits for that.',
  ],
  definitions: {
    name: positional('BASIN, or BASIN/STREAM; may be repeated', { isRepeated: true }),
    force: flag('Do not ask'),
    ...TARGET_DEFINITIONS,
  },
  parse: (values, { env }) => ({
    names: values.name.map((name) => parseResourceName(name, env)),
    force: values.force,
    target: parseTarget(values, env),
  }),
  async run({ names, force, target }, context) {
    if (!force && !(await isConfirmed(names.map(nameText), context))) {
      throw new CliError(1, 'nothing was deleted')
    }
    await withHeadwater({ target }, context, async (hw, { signal }) => {
      for (const name of names) {
        const { basin, stream } = name
        await resourceOf(hw, name).delete()
        // Closing the engine would interrupt the deletion until the storage is opened again.
        if (stream === undefined && target.kind !== 'service') await untilDeleted(hw, basin, context, signal)
        context.printError(`Deleted ${stream === undefined ? 'basin' : 'stream'} ${nameText(name)}`)
      }
    })
  },
})

/** Asks on a terminal. A program in place of a user could not answer. */
async function isConfirmed(names: readonly string[], { input, printError }: CliContext): Promise<boolean> {
  const terminal = input()
  if (!terminal.isTTY) return true
  printError(`Delete ${names.join(', ')} with all records? Type yes:`)
  const lines = createInterface({ input: terminal })
  try {
    for await (const line of lines) return /^y(es)?$/i.test(line.trim())
    return false
  } finally {
    lines.close()
  }
}

const POLL_MS = 20

/** Resolves when a basin whose deletion was requested is gone. */
export async function untilDeleted(
  hw: Headwater,
  basin: string,
  { clock }: Pick<CliContext, 'clock'>,
  signal?: AbortSignal,
): Promise<void> {
  for (;;) {
    signal?.throwIfAborted()
    const { items } = await hw.listBasins({ prefix: basin, limit: 1 })
    if (items[0]?.name !== basin) return
    await new Promise<void>((resolve) => clock.schedule(POLL_MS, resolve))
  }
}
