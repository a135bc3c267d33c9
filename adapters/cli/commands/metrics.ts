import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  endOfUsage,
  STREAM_METRIC_SETS,
} from '../../../src/model/metrics.ts'
import {
  arrayOf,
  dateTimeText,
  integerOf,
  nullable,
  objectOf,
  required,
  stringOf,
} from '../../../src/wire/json-members.ts'
import { readJsonText } from '../../../src/wire/json-reader.ts'
import { parseArguments, timeArgument } from '../arguments.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg, quoteName } from '../errors.ts'
import { table } from '../output.ts'
import { NAME_NOTES, parseResourceName, type ResourceName } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withClient } from '../target.ts'

const INTERVALS = ['minute', 'hour', 'day']

const DEFINITIONS = {
  name: { type: 'positional', required: false, description: 'BASIN, or BASIN/STREAM. Default: the account' },
  set: { type: 'string', description: 'Metric sets, separated by commas; see below. Default: all' },
  start: { type: 'string', default: '1d', description: 'Start of the range' },
  end: { type: 'string', description: 'End of the range. Default: now' },
  interval: { type: 'string', description: 'minute, hour or day. The default depends on the set' },
  json: { type: 'boolean', default: false, description: 'Print each set as a JSON object on a line' },
  ...TARGET_DEFINITIONS,
} as const

function parse(args: readonly string[], { env, clock }: CliContext) {
  const parsed = parseArguments(args, DEFINITIONS, 'metrics')
  const { name: text, set, start, end, interval, json } = parsed
  const name = text === undefined ? undefined : parseResourceName(text, env)
  if (name !== undefined && name.basin.length < BASIN_NAME_BYTES_MIN_ON_POST) {
    throw new CliError(
      2,
      `the API has no usage metrics of basin ${quoteName(name.basin)}: ` +
        `its name must have at least ${BASIN_NAME_BYTES_MIN_ON_POST} characters`,
    )
  }
  const known: readonly string[] = setsOf(name)
  const sets = set === undefined ? known : set.split(',')
  const unknown = sets.find((one) => !known.includes(one))
  if (unknown !== undefined) {
    throw new CliError(2, `unknown metric set ${quoteArg(unknown)}; expected ${known.join(', ')}`)
  }
  if (interval !== undefined && !INTERVALS.includes(interval)) {
    throw new CliError(2, `invalid interval ${quoteArg(interval)}; expected minute, hour or day`)
  }
  const now = clock.now()
  const range = {
    start: String(Math.floor(timeArgument(start, '`--start`', now) / 1000)),
    end: String(end === undefined ? endOfUsage(now) : Math.ceil(timeArgument(end, '`--end`', now) / 1000)),
  }
  return {
    name,
    sets,
    query: { ...range, ...(interval !== undefined && { interval }) },
    json,
    target: parseTarget(parsed, env),
  }
}

function setsOf(name: ResourceName | undefined): readonly string[] {
  if (name === undefined) return ACCOUNT_METRIC_SETS
  return name.stream === undefined ? BASIN_METRIC_SETS : STREAM_METRIC_SETS
}

export const METRICS = command({
  name: 'metrics',
  description: 'Print usage metrics of the account, a basin or a stream',
  notes: [
    `Sets of the account: ${ACCOUNT_METRIC_SETS.join(' ')}`,
    `Sets of a basin: ${BASIN_METRIC_SETS.join(' ')}`,
    `Sets of a stream: ${STREAM_METRIC_SETS.join(' ')}`,
    'Times are milliseconds, RFC 3339 or a duration before now, such as 7d; a range has at most 30 days.',
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  run: ({ name, sets, query, json, target }, context) =>
    withClient({ target }, context, async (client) => {
      const parts = name === undefined ? [] : [name.basin, name.stream ?? []].flat().map(encodeURIComponent)
      const rows = [['SET', 'METRIC', 'TIME', 'VALUE', 'UNIT']]
      for (const set of sets) {
        const path = `/${['metrics', ...parts].join('/')}?${new URLSearchParams({ set, ...query })}`
        const text = await client.text({ method: 'GET', path })
        if (json) context.print(`{"set":${JSON.stringify(set)},${text.trim().slice(1)}`)
        else rows.push(...rowsOf(text).map((row) => [set, ...row]))
      }
      if (!json) for (const line of table(rows)) context.print(line)
    }),
})

function rowsOf(text: string): string[][] {
  return required(objectOf(readJsonText(text), 'body'), 'values', arrayOf).flatMap((value) => {
    const [[kind, content] = []] = objectOf(value, 'values').members()
    const metric = objectOf(content ?? null, kind ?? 'values')
    const name = required(metric, 'name', stringOf)
    const unit = nullable(metric, 'unit', stringOf) ?? ''
    if (kind === 'scalar') return [[name, '', String(required(metric, 'value', integerOf)), unit]]
    const values = required(metric, 'values', arrayOf)
    if (kind === 'label') return values.map((label) => [name, '', stringOf(label, 'values'), unit])
    return pointsOf(values).map(([time, amount]) => [name, dateTimeText(time * 1000), String(amount), unit])
  })
}

function pointsOf(values: ReturnType<typeof arrayOf>): (readonly [number, number])[] {
  return values.map((value) => {
    const [time, amount] = arrayOf(value, 'values')
    return [integerOf(time ?? null, 'time'), integerOf(amount ?? null, 'value')]
  })
}
