import { describe, expect, it } from 'vitest'
import { recordTemplate } from '../../adapters/cli/generated-records.ts'
import { parseJsonPath, selectedText } from '../../adapters/cli/record-format.ts'
import { resultOf, run, service } from './run.ts'
import { TARGETS } from './targets.ts'

const RECORDS = [
  '{"body":"{\\"user\\":{\\"name\\":\\"ann\\"},\\"n\\":1}","headers":[["tenant","t1"],["level","info"]],"timestamp":1000}',
  '{"body":"{\\"user\\":{\\"name\\":\\"Bob\\"},\\"tags\\":[1,2]}","headers":[["tenant","t2"]],"timestamp":2000}',
  '{"body":"plain","timestamp":3000}',
].join('\n')

describe.each(TARGETS)('on %s', (_, makeTarget) => {
  async function withRecords() {
    const { command } = await makeTarget()
    await command('append a/b --json', RECORDS)
    await command('fence a/b worker-1')
    return async (words: string | readonly string[]) => (await command(words)).written
  }

  it.each([
    ['--grep bob -i', [1]],
    ['--grep bob', []],
    ['--grep n":1|pl..n', [0, 2]],
    ['--header tenant=t2', [1]],
    ['--header tenant', [0, 1]],
    ['--header tenant --header level:info', [0]],
    ['--select .user.name', [0, 1]],
    ['--select .tags[-1]', [1]],
    ['--commands', [0, 1, 2, 3]],
    ['--commands --grep fence', [3]],
    ['--count 2', [0, 1]],
    ['--header tenant --count 1', [0]],
    ['--count 0', []],
  ])('read %s prints the records that match', async (options, expected) => {
    const read = await withRecords()
    const lines = await read(['read', 'a/b', ...options.split(' '), '--format', '%o\\n'])
    expect(lines.map(Number)).toEqual(expected)
  })

  it.each([
    ['tail a/b -n 1', ['plain']],
    ['tail a/b -n 1 --commands', ['fence worker-1']],
    ['tail a/b -n 1 --grep ann --select .user', ['{"name":"ann"}']],
    ['tail a/b -n 9 --select .user.name', ['ann', 'Bob']],
    ['tail a/b -n 0', []],
  ])('%s counts the records that it prints', async (words, expected) => {
    const read = await withRecords()
    expect(await read(words)).toEqual(expected)
  })

  it('--format fills in every directive, and adds nothing', async () => {
    const read = await withRecords()
    const format = '%o|%T|%D|%h|%h{tenant}|%h{no}|%s{.user.name}|%s{.n}|%S|%b|%%\\t\\x41\\n'
    expect(await read(['read', 'a/b', '--count', '1', '--format', format])).toEqual([
      `0|1000|1970-01-01T00:00:01Z|tenant=t1,level=info|t1||ann|1|29|${btoa('{"user":{"name":"ann"},"n":1}')}|%\tA`,
    ])
    expect(await read(['read', 'a/b', '--select', '.user.name', '--format', '%s\\n'])).toEqual(['ann', 'Bob'])
    expect(await read(['read', 'a/b', '--format', '%s '])).toEqual([])
  })

  it('tail finds records far before the tail, and those after a trim', async () => {
    const { command } = await makeTarget()
    await command(
      'append a/b',
      `${Array.from({ length: 2_500 }, (_, i) => (i % 600 === 0 ? `x${i}` : `${i}`)).join('\n')}\n`,
    )
    expect((await command('tail a/b -n 3 --grep x')).written).toEqual(['x1200', 'x1800', 'x2400'])
    expect((await command('tail a/b -n 99 --grep x')).written).toEqual([
      'x0',
      'x600',
      'x1200',
      'x1800',
      'x2400',
    ])
  })

  it('append makes records of a template', async () => {
    const { command } = await makeTarget()
    const { exitCode, err } = await command([
      'append',
      'a/b',
      '%i/%r{3}/%n{0}%%',
      '--count',
      '1200',
      '--header',
      'k=v',
    ])
    expect([exitCode, err.at(-1)]).toEqual([0, 'Appended 1,200 records to a/b: sequence number 0 to 1199'])
    const { written } = await command('tail a/b -n 1 --json')
    expect(JSON.parse(written[0]!)).toMatchObject({
      seq_num: 1199,
      headers: [['k', 'v']],
      body: expect.stringMatching(/^1200\/[a-z0-9]{3}\/0%$/),
    })
  })

  it('append takes line breaks of Windows, and leaves out empty lines only when asked', async () => {
    const { command } = await makeTarget()
    await command('append a/lf', 'one\r\n\r\n\ntwo\rx\r\nthree')
    expect((await command(['read', 'a/lf', '--format', '%s;'])).exitCode).toBe(0)
    const bodies = (await command('read a/lf --json')).written.map((line) => JSON.parse(line).body)
    expect(bodies).toEqual(['one', '', '', 'two\rx', 'three'])
    await command('append a/full --skip-empty', 'one\r\n\r\n\ntwo\n')
    expect((await command('read a/full')).written).toEqual(['one', 'two'])
    const { err } = await command('append a/full --json --skip-empty', '{"body":"x"}\n\n{bad\n')
    expect(err.at(-1)).toContain('line 3: invalid JSON')
  })

  it('a refused line and an empty input leave no stream', async () => {
    const { command } = await makeTarget()
    expect((await command('append a/b --json', '{bad\n')).exitCode).toBe(1)
    expect(await command('append a/b', '')).toMatchObject({ exitCode: 0, err: ['Appended nothing to a/b'] })
    expect(await command('append a/b x --fencing-token t')).toMatchObject({
      exitCode: 1,
      err: ['headwater: stream a/b does not exist, and so has no fencing token'],
    })
    expect((await command('ls')).out).toEqual([])
  })
})

it('append --rate appends no faster, and stops at a signal', async () => {
  const { hw, world } = await service({ open: true })
  let now = 0
  const started = run(['append', 'app/s', '%i', '--rate', '2'], { ...world, now: () => now })
  await expect
    .poll(() =>
      hw
        .basin('app')
        .stream('s')
        .checkTail()
        .catch(() => undefined),
    )
    .toMatchObject({ seqNum: 1 })
  now = 1_100
  await expect.poll(() => hw.basin('app').stream('s').checkTail()).toMatchObject({ seqNum: 3 })
  started.signals.emit('SIGINT')
  expect(await started.exitCode).toBe(130)
  expect(started.err.at(-1)).toBe('Appended 3 records to app/s: sequence number 0 to 2, before it stopped')
})

it.each([
  [
    'read a/b --format %q',
    'invalid `--format`: unknown directive `%q`; expected %o %T %D %s %S %b %h, or %%',
  ],
  ['read a/b --format \\q', 'invalid `--format`: unknown escape'],
  ['read a/b --format %o{x}', 'unknown directive `%o{x}`'],
  ['read a/b --format %h{tenant', 'invalid `--format`: `%h{` without `}`'],
  ['read a/b --grep (', 'invalid `--grep`: Invalid regular expression'],
  ['read a/b --header =x', 'invalid header `=x`; `--header` must be NAME=VALUE or NAME'],
  ['read a/b --select a', 'invalid `--select` `a`; it must be a path such as .user.name or .items[0]'],
  ['read a/b --select .a --json', '`--select` cannot be combined with `--json`'],
  ['read a/b --format %o --json', '`--format` cannot be combined with `--json`'],
  ['read a/b -i', '`--ignore-case` requires `--grep`'],
  ['append a/b --count 3', '`--count` requires TEXT, the template of the records'],
  ['append a/b x --count 3 --json', '`--count` cannot be combined with `--json`'],
  ['append a/b x --rate 0', 'invalid rate `0`; `--rate` must be a positive number of records a second'],
  ['append a/b %q --count 1', 'invalid TEXT: unknown directive `%q`; expected %i %T %D %u %n %r, or %%'],
  ['append a/b --json --header a=b', '`--header` cannot be combined with `--json`'],
])('%s is rejected with exit code 2', async (words, message) => {
  expect(await resultOf(words.split(' '))).toEqual({
    exitCode: 2,
    out: [],
    err: [expect.stringContaining(message)],
  })
})

describe('a path', () => {
  const JSON_TEXT = '{"a":{"b":[{"c":1},{"c":"x"}],"d e":null},"__proto__":5}'
  it.each([
    ['.', JSON_TEXT],
    ['.a.b[0].c', '1'],
    ['.a.b[-1].c', 'x'],
    ['.a["d e"]', 'null'],
    ['.a."d e"', 'null'],
    ['.["a"].b[1]', '{"c":"x"}'],
    ['.a.b[9]', undefined],
    ['.a.b.c', undefined],
    ['.toString', undefined],
    ['.a[0]', undefined],
    ['.__proto__', '5'],
  ])('%s selects %s', (path, expected) => {
    expect(selectedText(JSON_TEXT, parseJsonPath(path, 'PATH'))).toBe(expected)
  })

  it.each(['', 'a', '..', '.a.', '.a[', '.a[x]', '.a b', '."a', '.a]', '.["a"', '."\\q"'])(
    '%j is rejected',
    (path) => {
      expect(() => parseJsonPath(path, 'PATH')).toThrow('it must be a path such as .user.name')
    },
  )

  it('selects nothing of text that is not JSON', () => {
    expect(selectedText('{', [])).toBeUndefined()
  })
})

it('a template makes different records', () => {
  const make = recordTemplate('%u %r{20}')
  const [one, two] = [1, 2].map((index) => new TextDecoder().decode(make({ index, now: 0 })))
  expect(one).toMatch(/^[0-9a-f-]{36} [a-z0-9]{20}$/)
  expect(one).not.toBe(two)
})
