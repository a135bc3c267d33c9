import { describe, expect, it } from 'vitest'
import { CliError } from '../../adapters/cli/errors.ts'
import { parseRetention, retentionForm, retentionText, timeArgument } from '../../adapters/cli/times.ts'
import { resultOf } from './run.ts'

describe('--retention', () => {
  it.each([
    ['forever', 'infinite', { infinite: {} }, 'forever'],
    ['infinite', 'infinite', { infinite: {} }, 'forever'],
    ['30d', { ageSeconds: 2_592_000 }, { age: 2_592_000 }, 'for 30 days'],
    ['24h', { ageSeconds: 86_400 }, { age: 86_400 }, 'for 1 day'],
    ['12h', { ageSeconds: 43_200 }, { age: 43_200 }, 'for 12 hours'],
    ['90m', { ageSeconds: 5_400 }, { age: 5_400 }, 'for 90 minutes'],
    ['3601s', { ageSeconds: 3_601 }, { age: 3_601 }, 'for 3,601 seconds'],
  ] as const)('%s', (text, policy, form, said) => {
    expect(parseRetention(text)).toEqual(policy)
    expect(retentionForm(policy)).toEqual(form)
    expect(retentionText(policy)).toBe(said)
  })

  it.each(['', '0d', '-1d', '1', '1w', '1.5h', 'Forever', 'never'])('rejects %j', (text) => {
    expect(() => parseRetention(text)).toThrow(CliError)
  })

  it.each(['create a/b', 'config a', 'serve'])('has one form: %s', async (command) => {
    const { exitCode, err } = await resultOf([...command.split(' '), '--retention', 'soon'])
    expect(exitCode).toBe(2)
    expect(err.join()).toContain(
      'invalid retention `soon`; `--retention` must be `forever`, or a positive integer with s, m, h or d, such as 30d',
    )
  })
})

const NOW = new Date(2026, 2, 5, 12, 30, 15, 500).getTime()

it.each([
  ['1500', 1500],
  ['now', NOW],
  ['today', new Date(2026, 2, 5).getTime()],
  ['yesterday', new Date(2026, 2, 4).getTime()],
  ['-15m', NOW - 900_000],
  ['15m', NOW - 900_000],
  ['-2d', NOW - 172_800_000],
  ['2026-01-31', Date.UTC(2026, 0, 31)],
  ['2026-01-31T12:00:00+01:00', Date.UTC(2026, 0, 31, 11)],
])('the time %s is %i', (text, expected) => {
  expect(timeArgument(text, '`--timestamp`', NOW)).toBe(expected)
})

it.each(['tomorrow', '', '-', '--15m', '-15', '1y', 'toString'])('the time %j is rejected', (text) => {
  expect(() => timeArgument(text, '`--timestamp`', NOW)).toThrow('or a duration before now such as -15m')
})
