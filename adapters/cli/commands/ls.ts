import { compareUtf8 } from '../../../src/model/bytes.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../../src/model/names.ts'
import {
  arrayOf,
  booleanOf,
  keptStringOf,
  nullable,
  objectOf,
  required,
  stringOf,
} from '../../../src/wire/json-members.ts'
import { parseArguments } from '../arguments.ts'
import type { Client } from '../client.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable } from '../errors.ts'
import { NAME_NOTES, splitName } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withClient } from '../target.ts'

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
    withClient(args, context, async (client) => {
      const { basin, prefix, long, json } = args
      for await (const item of listAll(client, basin, prefix)) {
        if (json) context.print(JSON.stringify(item))
        else if (!long) context.print(printable(item.name))
        else context.print([item.created_at.padEnd(24), detailOf(item), printable(item.name)].join('  '))
      }
    }),
})

interface Item {
  readonly name: string
  readonly created_at: string
  readonly deleted_at: string | null
  readonly state?: string
  readonly location?: string | null
  readonly cipher?: string | null
}

function detailOf({ state, cipher, deleted_at }: Item): string {
  return printable(state ?? (deleted_at === null ? (cipher ?? 'plain') : 'deleting')).padEnd(11)
}

/** Iterates over all basins, or all streams of a basin, one page at a time. */
async function* listAll(client: Client, basin: string | undefined, prefix: string): AsyncGenerator<Item> {
  const member = basin === undefined ? 'basins' : 'streams'
  let after = ''
  for (;;) {
    const query = new URLSearchParams({ prefix, start_after: after })
    const call = { method: 'GET', path: `/${member}?${query}`, basin } as const
    const page = await client.json(call, (object) => ({
      items: required(object, member, arrayOf).map((value) => {
        const item = objectOf(value, member)
        return {
          name: required(item, 'name', keptStringOf),
          created_at: nullable(item, 'created_at', stringOf) ?? '',
          deleted_at: nullable(item, 'deleted_at', stringOf) ?? null,
          ...(basin === undefined
            ? {
                state: nullable(item, 'state', stringOf) ?? '',
                location: nullable(item, 'location', stringOf) ?? null,
              }
            : { cipher: nullable(item, 'cipher', stringOf) ?? null }),
        }
      }),
      hasMore: required(object, 'has_more', booleanOf),
    }))
    yield* page.items
    if (!page.hasMore) return
    const last = page.items.at(-1)?.name ?? ''
    // Without progress, the next page would be the same one, forever.
    if (compareUtf8(last, after) <= 0) throw new CliError(1, `the server lists ${member} out of order`)
    after = last
  }
}
