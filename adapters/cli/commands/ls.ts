import type { BasinInfo, StreamInfo } from '../../../src/index.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../../src/model/names.ts'
import { dateTimeText } from '../../../src/wire/json-members.ts'
import { basinInfoJson, streamInfoJson } from '../../../src/wire/json-resources.ts'
import { parseArguments } from '../arguments.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable } from '../errors.ts'
import { NAME_NOTES, splitName } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withHeadwater } from '../target.ts'

const DEFINITIONS = {
  name: { type: 'positional', required: false, description: 'BASIN, or BASIN/PREFIX. Default: list basins' },
  prefix: { type: 'string', description: 'Only names with this prefix' },
  long: {
    type: 'boolean',
    alias: 'l',
    default: false,
    description: 'Also print the creation time and the state',
  },
  json: {
    type: 'boolean',
    default: false,
    description: 'Print each basin or stream as a JSON object on a line',
  },
  ...TARGET_DEFINITIONS,
} as const

function parse(args: readonly string[], { env }: CliContext) {
  const parsed = parseArguments(args, DEFINITIONS, 'ls')
  const { name, prefix, long, json } = parsed
  const { basin, rest } = name === undefined ? {} : splitName(name, env)
  if (rest !== undefined && prefix !== undefined) {
    throw new CliError(2, '`--prefix` cannot be combined with BASIN/PREFIX')
  }
  const start = rest ?? prefix ?? ''
  const problem =
    basin === undefined ? basinPrefixProblem(start, 'prefix') : streamPrefixProblem(start, 'prefix')
  if (problem !== undefined) throw new CliError(2, `\`--prefix\`: ${problem}`)
  return { basin, prefix: start, long, json, target: parseTarget(parsed, env) }
}

/** Lists basins or streams: one name a line. */
export const LS = command({
  name: 'ls',
  description: 'List basins, or the streams of a basin',
  notes: [
    'Examples: headwater ls; headwater ls app-logs; headwater ls app-logs/web/ --long',
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  run: (args, context) =>
    withHeadwater(args, context, async (hw) => {
      const { basin, prefix, long, json } = args
      const items =
        basin === undefined ? hw.listAllBasins({ prefix }) : hw.basin(basin).listAllStreams({ prefix })
      for await (const item of items) {
        if (json) context.print('state' in item ? basinInfoJson(item) : streamInfoJson(item))
        else if (!long) context.print(printable(item.name))
        else {
          const columns = [
            dateTimeText(item.createdAt).padEnd(24),
            stateOf(item).padEnd(11),
            printable(item.name),
          ]
          context.print(columns.join('  '))
        }
      }
    }),
})

function stateOf(item: BasinInfo | StreamInfo): string {
  if ('state' in item) return item.state
  return item.deletedAt === null ? (item.cipher ?? 'plain') : 'deleting'
}
