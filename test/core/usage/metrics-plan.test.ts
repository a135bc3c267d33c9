import { describe, expect, it } from 'vitest'
import { type MetricsLevel, planMetrics } from '../../../src/core/usage/metrics-plan.ts'
import type { MetricInterval, MetricSet, MetricsQuery } from '../../../src/model/metrics.ts'
import { invalidMessage } from '../../model/rejection.ts'

const DAY = 86_400
const NOW = 20_000 * DAY + 12_345

/** The cases are in seconds. */
function inMilliseconds({ start, end, ...query }: MetricsQuery): MetricsQuery {
  return { ...query, start: start && Number(start) * 1000, end: end && Number(end) * 1000 }
}

function plan(level: MetricsLevel, query: MetricsQuery) {
  const { from, to, seconds, resolution } = planMetrics(level, inMilliseconds(query), NOW)
  return { from: from - NOW, to: to - NOW, seconds, interval: resolution.interval }
}

describe('a metrics query', () => {
  it.each<[string, Omit<MetricsQuery, 'set'>, string | undefined]>([
    ['no bounds', {}, 'start and end params required for read-ops'],
    ['no start', { end: NOW }, 'start and end params required for read-ops'],
    ['no end', { start: NOW }, 'start and end params required for read-ops'],
    ['start after end', { start: NOW, end: NOW - 1 }, '`start` must not be after `end`'],
    ['start at end', { start: NOW, end: NOW }, undefined],
    ['end 300 s in the future', { start: NOW, end: NOW + 300 }, undefined],
    [
      'end further in the future',
      { start: NOW, end: NOW + 301 },
      '`end` must not be more than 300 seconds in the future',
    ],
    ['30 days', { start: NOW - 30 * DAY, end: NOW }, undefined],
    [
      'more than 30 days',
      { start: NOW - 30 * DAY - 1, end: NOW },
      '`end` must not be more than 2592000 seconds after `start`',
    ],
    ['the beginning of time', { start: 0, end: 3_600 }, undefined],
    ['a negative start', { start: -1, end: NOW }, '`start` must be a time from 1970 to 2106'],
    [
      'a start that is not a number',
      { start: Number.NaN, end: NOW },
      '`start` must be a time from 1970 to 2106',
    ],
    ['an end beyond 32 bits', { start: 1, end: 2 ** 32 }, '`end` must be a time from 1970 to 2106'],
    [
      'the largest end',
      { start: 1, end: 2 ** 32 - 1 },
      '`end` must not be more than 300 seconds in the future',
    ],
  ])('%s', (_, query, message) => {
    expect(invalidMessage(() => plan('basin', { set: 'read-ops', ...query }))).toBe(message)
  })

  it.each<[MetricsLevel, MetricSet, readonly MetricInterval[], MetricInterval]>([
    ['account', 'account-ops', ['minute', 'hour', 'day'], 'hour'],
    ['basin', 'storage', ['hour'], 'hour'],
    ['basin', 'append-ops', ['minute', 'hour', 'day'], 'minute'],
    ['basin', 'read-ops', ['minute', 'hour', 'day'], 'minute'],
    ['basin', 'read-throughput', ['minute', 'hour', 'day'], 'minute'],
    ['basin', 'append-throughput', ['minute', 'hour', 'day'], 'minute'],
    ['basin', 'basin-ops', ['minute', 'hour', 'day'], 'hour'],
    ['stream', 'storage', ['minute'], 'minute'],
  ])('intervals of %s %s: %j, by default %s', (level, set, accepted, byDefault) => {
    const query = { set, start: NOW, end: NOW }
    expect(plan(level, query).interval).toBe(byDefault)
    for (const interval of ['minute', 'hour', 'day', 'week' as MetricInterval] as const) {
      const message = invalidMessage(() => plan(level, { ...query, interval }))
      if (message === undefined) expect(plan(level, { ...query, interval }).interval).toBe(interval)
      expect([interval, message === undefined]).toEqual([interval, accepted.includes(interval)])
    }
  })

  it('accepts a `Date` or milliseconds, and includes seconds that a bound divides', () => {
    const [start, end] = [new Date(NOW * 1000 + 1), NOW * 1000 + 60_001]
    expect(planMetrics('basin', { set: 'read-ops', start, end }, NOW)).toMatchObject({
      from: NOW - 45,
      to: NOW + 75,
    })
    const invalid = { set: 'read-ops', start: new Date(Number.NaN), end } as const
    expect(invalidMessage(() => planMetrics('basin', invalid, NOW))).toMatch(/^`start` must be a time/)
  })

  it('ignores the interval of active basins', () => {
    const query = {
      set: 'active-basins',
      start: NOW - 1,
      end: NOW,
      interval: 'week' as MetricInterval,
    } as const
    expect(plan('account', query).seconds).toBe(3_600)
  })

  it.each<[MetricsLevel, MetricSet]>([
    ['account', 'storage'],
    ['basin', 'account-ops'],
    ['stream', 'read-ops'],
    ['stream', 'other' as MetricSet],
  ])('rejects sets of other levels: %s has no %s', (level, set) => {
    expect(invalidMessage(() => plan(level, { set, start: NOW, end: NOW }))).toMatch(/^`set` must be one of /)
  })
})

describe('the intervals of a metrics query', () => {
  /** NOW is 45 s into its minute and 1,545 s into its hour. */
  it.each<[string, number, number, MetricInterval, number, number]>([
    ['start is aligned down, and an interval that begins before end is included', -90, 0, 'minute', -105, 15],
    ['an interval that begins at end is not', -90, -45, 'minute', -105, -45],
    ['an empty range selects the interval that contains it', -50, -50, 'minute', -105, -45],
    ['also if the interval begins there', -45, -45, 'minute', -45, 15],
    ['hours', -1_600, -1_500, 'hour', -1_545 - 3_600, -1_545 + 3_600],
    ['days', -5, 0, 'day', -12_345, -12_345 + DAY],
  ])('%s', (_, start, end, interval, from, to) => {
    expect(plan('basin', { set: 'read-ops', start: NOW + start, end: NOW + end, interval })).toMatchObject({
      from,
      to,
      interval,
    })
  })

  it.each<[MetricInterval, number, MetricInterval]>([
    ['minute', 3, 'minute'],
    ['minute', 3.1, 'hour'],
    ['minute', 40, 'hour'],
    ['minute', 41.5, 'day'],
    ['hour', 40, 'hour'],
    ['hour', 41.5, 'day'],
    ['day', 1, 'day'],
    ['minute', 20_000, 'day'],
  ])('requested by %s since %d days ago: returned by %s', (interval, days, returned) => {
    const start = NOW - days * DAY
    expect(plan('basin', { set: 'read-ops', start, end: start + 1, interval }).interval).toBe(returned)
  })
})
