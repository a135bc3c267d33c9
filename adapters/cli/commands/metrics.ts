import { Option } from '@commander-js/extra-typings'
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
import type { CliContext } from '../context.ts'
import { CliError, quoteArg } from '../errors.ts'
import { targetCommand } from '../options.ts'
import { printTable } from '../output.ts'
import { withHeadwater } from '../target.ts'
import { resourceName, resourceOf, time } from '../values.ts'

const DAY_MS = 86_400_000

export const metricsCommand = (context: CliContext) =>
  targetCommand('metrics', {
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
  })
    .argument('[NAME]', 'BASIN, or BASIN/STREAM. Default: the account', resourceName(context))
    .option('--set <SETS>', 'Metric sets, separated by commas; see below. Default: all')
    .option('--start <TIME>', 'Start of the range. Default: 1d', time(context))
    .option('--end <TIME>', 'End of the range. Default: now', time(context))
    .addOption(
      new Option('--interval <INTERVAL>', 'Length of each part. The default depends on the set').choices(
        METRIC_INTERVALS,
      ),
    )
    .option('--json', 'Print each set as a JSON object on a line')
    .action((name, options) => {
      const known: readonly string[] =
        name === undefined
          ? ACCOUNT_METRIC_SETS
          : name.stream === undefined
            ? BASIN_METRIC_SETS
            : STREAM_METRIC_SETS
      const sets = options.set?.split(',') ?? known
      const unknown = sets.find((set) => !known.includes(set))
      if (unknown !== undefined) {
        throw new CliError(2, `unknown metric set ${quoteArg(unknown)}; expected ${known.join(', ')}`)
      }
      const now = context.clock.now()
      const { start = now - DAY_MS, end = endOfUsage(now) * 1000, interval, json } = options
      return withHeadwater(options, context, async (hw) => {
        const source: UsageSource = name === undefined ? hw : resourceOf(hw, name)
        const rows = [['SET', 'METRIC', 'TIME', 'VALUE', 'UNIT']]
        for (const set of sets) {
          const metrics = await source.metrics({ start, end, interval, set: set as MetricSet })
          if (json) context.print(`{"set":${JSON.stringify(set)},${metricsJson(metrics).slice(1)}`)
          else rows.push(...metrics.flatMap(rowsOf).map((row) => [set, ...row]))
        }
        if (!json) printTable(rows, context)
      })
    })

/** The sets depend on what is metered, and were checked. */
interface UsageSource {
  metrics(query: MetricsQuery): Promise<readonly Metric[]>
}

function rowsOf(metric: Metric): string[][] {
  const { name } = metric
  if (metric.kind === 'label') return metric.values.map((label) => [name, '', label, ''])
  return metric.values.map(([at, amount]) => [name, timeText(at), String(amount), metric.unit])
}
