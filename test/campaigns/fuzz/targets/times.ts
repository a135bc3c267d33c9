import fc from 'fast-check'
import { expiryText } from '../../../../adapters/cli/token-scope.ts'
import { millisecondsIn } from '../../../../adapters/testing/duration.ts'
import { dateTimeOf, dateTimeText } from '../../../../src/wire/json-members.ts'
import { equal, ok } from '../harness/assertions.ts'
import { headwaterError, usageError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'

const YEAR_0 = Date.UTC(2000, 0, 1) - 2000 * 365.2425 * 86_400_000
const END_OF_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
const NOW = Date.UTC(2030, 0, 1)

const date = fc
  .oneof(
    fc.integer({ min: Math.ceil(YEAR_0), max: END_OF_TIME }),
    fc.constantFrom(0, NOW, END_OF_TIME, Date.UTC(2024, 1, 29)),
  )
  .map((time) => new Date(time))

export const dateTimes = target({
  name: 'date-times',
  models: date,
  encode: dateTimeText,
  decode: (input: string) => dateTimeOf(input, 'expires_at'),
  means: (of) => of,
  refuses: headwaterError('bad_json'),
  verify(value, input) {
    equal(dateTimeOf(dateTimeText(value), 'again'), value, 'the time, written and read again')
    // The platform decodes the same, or rejects leap seconds, a space instead of the T, and long fractions.
    const expected = Date.parse(input)
    const isCommon = !/:60|\.\d{4}|^.{10} /.test(input)
    if (isCommon && !Number.isNaN(expected)) equal(value.getTime(), expected, 'what the platform reads')
    ok(!(isCommon && Number.isNaN(expected)) || /[tz]/.test(input), 'the platform reads no time')
  },
  words: [
    'T',
    't',
    'Z',
    'z',
    '+00:00',
    '-23:59',
    '.999999999',
    '.1',
    ':60',
    '02-29',
    '0000',
    '9999',
    '24:00:00',
  ],
  share: 15,
})

/** Durations of the virtual clock. */
export const durations = target({
  name: 'durations',
  models: fc.tuple(fc.nat(1_000_000), fc.constantFrom('ms', 's', 'm', 'h', 'd')),
  encode: ([count, unit]) => `${count}${unit}`,
  decode: (input: string) => millisecondsIn(input),
  means: ([count, unit]) => count * { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit],
  refuses: headwaterError('invalid'),
  verify: (ms) => ok(ms >= 0 && ms <= Number.MAX_SAFE_INTEGER, `${ms} is no duration`),
  words: ['ms', 's', 'm', 'h', 'd', '.', '.5', ' ', '-'],
})

/** `--expires-in` and `--expires-at` of the command line. */
export const expiries = target({
  name: 'expiries',
  models: fc.oneof(
    fc
      .tuple(fc.integer({ min: 1, max: 1000 }), fc.constantFrom('s', 'm', 'h', 'd'))
      .map((parts) => `in ${parts.join('')}`),
    date.map((at) => `at ${dateTimeText(at)}`),
  ),
  encode: (expiry) => expiry,
  decode(input: string) {
    const [, kind, value] = /^(in|at) (.*)$/s.exec(input) ?? [input, 'in', input]
    const isIn = kind === 'in'
    return expiryText({ expiresIn: isIn ? value : undefined, expiresAt: isIn ? undefined : value }, NOW)
  },
  refuses: usageError,
  verify(expiry) {
    equal(dateTimeText(dateTimeOf(expiry, 'expiry')), expiry, 'the time, written and read again')
  },
  words: ['in ', 'at ', '90s', '999999999999d', '2912999d'],
})
