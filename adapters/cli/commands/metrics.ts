import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  endOfUsage,
  METRIC_INTERVALS,
  type Metric,
  type MetricSet,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../../src/model/metrics.ts'
import { timeText } from '../../../src/wire/json.ts'
import { metricsJson } from '../../../src/wire/json-resources.ts'
import { command, flag, positional, type Values, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg } from '../errors.ts'
import { table } from '../output.ts'
import { parseResourceName, type ResourceName, resourceOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'
import { timeArgument } from '../times.ts'

const DEFINITIONS = {
  name: positional('BASIN, or BASIN/STREAM. Default: the account', { required: false }),
  set: withValue('SETS', 'Metric sets, separated by commas; see below. Default: all'),
  start: withValue('TIME', 'Start of the range', { default: '1d' }),
  end: withValue('TIME', 'End of the range. Default: now'),
  interval: withValue('INTERVAL', 'Length of each part. The default depends on the set', {
    choices: METRIC_INTERVALS,
  }),
  json: flag('Print each set as a JSON object on a line'),
  ...TARGET_DEFINITIONS,
} as const

function parse(parsed: Values<typeof DEFINITIONS>, { env, clock }: CliContext) {
  const { name: text, set, start, end, interval, json } = parsed
  const name = text === undefined ? undefined : parseResourceName(text, env)
  const known: readonly string[] = setsOf(name)
  const sets = (set === undefined ? known : set.split(',')) as readonly MetricSet[]
  const unknown = sets.find((one) => !known.includes(one))
  if (unknown !== undefined) {
    throw new CliError(2, `unknown metric set ${quoteArg(unknown)}; expected ${known.join(', ')}`)
  }
  const now = clock.now()
  const range = {
    start: timeArgument(start, '`--start`', now),
    end: end === undefined ? endOfUsage(now) * 1000 : timeArgument(end, '`--end`', now),
  }
  return {
    name,
    sets,
    query: {
      ...range,
      interval,
    },
    json,
    target: parseTarget(parsed, env),
  }
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
  description: 'Print usage metrics of the account, a basin or a stream',
  examples: [
    'headwater metrics --start yesterday',
    'headwater metrics app-logs --set storage --interval hour',
  ],
  notes: [
    `Sets of the account: ${ACCOUNT_METRIC_SETS.join(' ')}`,
    `Sets of a basin: ${BASIN_METRIC_SETS.join(' ')}`,
    `Sets of a stream: ${STREAM_METRIC_SETS.join(' ')}`,
    'A range has at most 30 days.',
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
  return metric.values.map(([time, amount]) => [name, timeText(time), String(amount), metric.unit])
}
