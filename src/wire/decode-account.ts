import type { AccessScope, AccessTokenInfo, GroupPermissions, ResourceSet } from '../model/access.ts'
import { METRIC_INTERVALS, type Metric, type MetricPoint } from '../model/metrics.ts'
import { OPERATIONS, type Operation } from '../model/operations.ts'
import { integerOfJson, MalformedResponse, type ResponseObject, recordOf } from './response-json.ts'
import {
  booleanOfJson,
  choiceOf,
  dateOf,
  responseArrayOf,
  textOfJson,
  unlessNull,
} from './response-members.ts'

/** Decodes an access token in a list. Operations of later versions are left out. */
export function accessTokenInfoOf(value: unknown): AccessTokenInfo {
  const { id, expires_at, auto_prefix_streams, scope } = recordOf(value, 'access token')
  return {
    id: textOfJson(id, 'id'),
    expiresAt: unlessNull(expires_at, (date) => dateOf(date, 'expires_at')) ?? null,
    autoPrefixStreams:
      unlessNull(auto_prefix_streams, (flag) => booleanOfJson(flag, 'auto_prefix_streams')) ?? false,
    scope: scopeOf(recordOf(scope, 'scope')),
  }
}

function scopeOf({ basins, streams, access_tokens, op_groups, ops }: ResponseObject): AccessScope {
  const groups = unlessNull(op_groups, (value) => recordOf(value, 'op_groups')) ?? {}
  const names = responseArrayOf(ops ?? [], 'ops')
  return {
    basins: resourceSetOf(basins, 'basins'),
    streams: resourceSetOf(streams, 'streams'),
    accessTokens: resourceSetOf(access_tokens, 'access_tokens'),
    opGroups: {
      account: groupOf(groups.account),
      basin: groupOf(groups.basin),
      stream: groupOf(groups.stream),
    },
    ops: OPERATIONS.filter((operation: Operation) => names.includes(operation)),
  }
}

function resourceSetOf(value: unknown, name: string): ResourceSet | null {
  const set = unlessNull(value, (given) => recordOf(given, name))
  if (set === undefined) return null
  return set.prefix == null
    ? { exact: textOfJson(set.exact, name) }
    : { prefix: textOfJson(set.prefix, name) }
}

function groupOf(value: unknown): GroupPermissions {
  const { read, write } = unlessNull(value, (group) => recordOf(group, 'op_groups')) ?? {}
  return { read: read === true, write: write === true }
}

/** Decodes the metrics of a range of time, whose times become milliseconds. */
export function metricsOf(value: unknown): readonly Metric[] {
  return responseArrayOf(recordOf(value, 'metrics').values, 'values').flatMap((entry): readonly Metric[] => {
    const { accumulation, gauge, label } = recordOf(entry, 'values')
    if (accumulation !== undefined) {
      const series = recordOf(accumulation, 'accumulation')
      const interval = choiceOf(series.interval, 'interval', METRIC_INTERVALS)
      return [{ kind: 'accumulation', ...seriesOf(series), interval }]
    }
    if (gauge !== undefined) return [{ kind: 'gauge', ...seriesOf(recordOf(gauge, 'gauge')) }]
    // Other kinds, of other servers, have no form in the library.
    if (label === undefined) return []
    const { name, values } = recordOf(label, 'label')
    const texts = responseArrayOf(values, 'values').map((text) => textOfJson(text, 'values'))
    return [{ kind: 'label', name: textOfJson(name, 'name'), values: texts }]
  })
}

function seriesOf({ name, unit, values }: ResponseObject) {
  return {
    name: textOfJson(name, 'name'),
    unit: choiceOf(unit, 'unit', ['bytes', 'operations'] as const),
    values: responseArrayOf(values, 'values').map((point): MetricPoint => {
      const [time, total] = responseArrayOf(point, 'values')
      return [integerOfJson(time, 'values') * 1000, numberOf(total)]
    }),
  }
}

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value
  throw new MalformedResponse('`values` has a value that is not a number')
}
