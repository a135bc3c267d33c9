import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  endOfUsage,
  METRIC_INTERVALS,
  type Metric,
  type MetricInterval,
  type MetricSet,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../../src/model/metrics.ts'
import { dateTimeText } from '../../../src/wire/json-members.ts'
import { metricsJson } from '../../../src/wire/json-resources.ts'
import { parseArguments, timeArgument } from '../arguments.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg, quoteName } from '../errors.ts'
import { table } from '../output.ts'
import { NAME_NOTES, parseResourceName, type ResourceName, resourceOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withHeadwater } from '../target.ts'

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
  const sets = (set === undefined ? known : set.split(',')) as readonly MetricSet[]
  const unknown = sets.find((one) => !known.includes(one))
  if (unknown !== undefined) {
    throw new CliError(2, `unknown metric set ${quoteArg(unknown)}; expected ${known.join(', ')}`)
  }
  if (!isInterval(interval)) {
    throw new CliError(2, `invalid interval ${quoteArg(interval!)}; expected minute, hour or day`)
  }
  const now = clock.now()
  const range = {
    start: timeArgument(start, '`--start`', now),
    end: end === undefined ? endOfUsage(now) * 1000 : timeArgument(end, '`--end`', now),
  }
  return {
    name,
    sets,
    query: { ...range, interval },
    json,
    target: parseTarget(parsed, env),
  }
}

function isInterval(text: string | undefined): text is MetricInterval | undefined {
  return text === undefined || (METRIC_INTERVALS as readonly string[]).includes(text)
}

function setsOf(name: ResourceName | undefined): readonly string[] {
  if (name === undefined) return ACCOUNT_METRIC_SETS
  return name.stream === undefined ? BASIN_METRIC_SETS : STREAM_METRIC_SETS
}

/** The sets depend on what is metered, and were checked. */
interface UsageSource {
  metrics(query: MetricsQuery): Promise<readonly Metric[]>
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
    withHeadwater({ target }, context, async (hw) => {
      const source: UsageSource = name === undefined ? hw : resourceOf(hw, name)
      const rows = [['SET', 'METRIC', 'TIME', 'VALUE', 'UNIT']]
      for (const set of sets) {
        const metrics = await source.metrics({ ...query, set })
        if (json) context.print(`{"set":${JSON.stringify(set)},${metricsJson(metrics).slice(1)}`)
        else rows.push(...metrics.flatMap(rowsOf).map((row) => [set, ...row]))
      }
      if (!json) for (const line of table(rows)) context.print(line)
    }),
})

function rowsOf(metric: Metric): string[][] {
  const { name } = metric
  if (metric.kind === 'label') return metric.values.map((label) => [name, '', label, ''])
  return metric.values.map(([time, amount]) => [name, dateTimeText(time), String(amount), metric.unit])
}
