import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { HEADWATER } from '../../adapters/cli/commands.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { resultOf } from './run.ts'

const COMMANDS =
  'serve, append, read, tail, ls, info, create, config, delete, fence, trim, check-tail, login, logout, contexts, token, metrics, verify, upgrade, export, import, copy, init, bench, completion, help'

describe('headwater', () => {
  it.each([['--version'], ['-v']])('%s prints the version', async (option) => {
    expect(await resultOf([option])).toEqual({ exitCode: 0, out: [packageJson.version], err: [] })
  })

  it.each([
    [[], ['serve', 'token']],
    [['token'], ['issue', 'list', 'revoke']],
    [
      ['serve'],
      [
        '--port',
        '--host',
        '--storage',
        '--dir',
        '--no-auth',
        '--allow-origin',
        '--root-token',
        'HEADWATER_ROOT_TOKEN',
        'process list',
        'postgres://HOST/DATABASE',
      ],
    ],
    [
      ['token', 'issue'],
      [
        ...[
          'headwater token issue',
          '--basins',
          '--streams',
          '--access-tokens',
          '--ops',
          '--op-groups',
          '--scope',
        ],
        ...[
          '--expires-in',
          '--expires-at',
          '--auto-prefix',
          '--url',
          '--token',
          '--dir',
          '--storage',
          '--json',
        ],
        ...['PREFIX*', '$(headwater token issue', 'help options', 'set-default-location'],
      ],
    ],
    [
      ['token', 'list'],
      ['--prefix', '--url', '--token', '--dir', '--json', 'help options'],
    ],
    [
      ['token', 'revoke'],
      ['ID', '--url', '--token', '--dir', '--json', 'help options'],
    ],
  ])('%j --help describes its options', async (command, words) => {
    for (const option of ['--help', '-h']) {
      const { exitCode, out, err } = await resultOf([...command, option])
      expect([exitCode, err]).toEqual([0, []])
      for (const word of words) expect(out.join('\n')).toContain(word)
    }
  })

  it('every command has a description and examples that begin with a command', async () => {
    for (const { name, description, load } of (await HEADWATER.load()).commands ?? []) {
      expect(description).not.toBe('')
      const { commands, examples = [] } = await load()
      if (name === 'help' || name === 'completion' || commands !== undefined) continue
      expect(examples.length, name).toBeGreaterThan(0)
      for (const example of examples) expect(example).toContain(`headwater ${name}`)
    }
  })

  it.each([
    ['options', ['--url URL', 'HEADWATER_CONTEXT', 'yesterday', 'Exit codes']],
    ['format', ['%h{NAME}', '%i', '\\xHH', '.items[-1]']],
  ])('help %s explains the options and terms that commands share', async (topic, words) => {
    const { exitCode, out } = await resultOf(['help', topic])
    expect(exitCode).toBe(0)
    for (const word of words) expect(out.join('\n')).toContain(word)
  })

  it('help is at most 110 columns wide', async () => {
    for (const { name } of (await HEADWATER.load()).commands ?? []) {
      const { out } = await resultOf(name === 'help' ? ['help'] : [name, '--help'])
      expect(
        out
          .join('\n')
          .split('\n')
          .filter((line) => line.length > 125),
        name,
      ).toEqual([])
    }
  })

  it.each([['append'], ['token issue']])('help %s prints the same as --help', async (command) => {
    const words = command.split(' ')
    expect((await resultOf(['help', ...words])).out).toEqual((await resultOf([...words, '--help'])).out)
  })

  it('prints help in colour only to a terminal, and not with NO_COLOR', async () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true })
    const output = () => terminal
    const [plain] = (await resultOf(['append', '--help'])).out
    const [coloured] = (await resultOf(['append', '--help'], { output })).out
    const [refused] = (await resultOf(['append', '--help'], { output, env: { NO_COLOR: '1' } })).out
    expect(plain).not.toContain('\u001b')
    expect(plain).not.toMatch(/ $/m)
    expect(refused).toBe(plain)
    expect(stripVTControlCharacters(coloured!)).toBe(plain)
  })

  it('treats arguments after -- as names, not as options', async () => {
    const { err } = await resultOf(['token', 'revoke', '--', '--help'])
    expect(err).toEqual([expect.stringContaining('cannot reach')])
  })

  it.each([
    [[], `a command is required; expected one of ${COMMANDS}; see \`headwater --help\``],
    [['drink'], `unknown command \`drink\`; expected one of ${COMMANDS}; see \`headwater --help\``],
    [['token'], 'a command is required; expected one of issue, list, revoke; see `headwater token --help`'],
    [
      ['token', 'drink'],
      'unknown command `drink`; expected one of issue, list, revoke; see `headwater token --help`',
    ],
    [
      ['token', 'a-secret-of-somebody'],
      'unknown command (redacted); expected one of issue, list, revoke; see `headwater token --help`',
    ],
    [['tial'], 'unknown command `tial`; did you mean `tail`? See `headwater --help`'],
    [['list'], 'unknown command `list`; did you mean `ls`? See `headwater --help`'],
    [['token', 'isue'], 'unknown command `isue`; did you mean `issue`? See `headwater token --help`'],
    [
      ['tail', 'a/b', '--flow'],
      'unknown option `--flow`; did you mean `--follow`? See `headwater tail --help`',
    ],
    [
      ['append', 'a/b', '--no-craete'],
      'unknown option `--no-craete`; did you mean `--no-create`? See `headwater append --help`',
    ],
    [['help', 'append', 'drink'], 'unexpected argument `drink` of `help`; see `headwater append --help`'],
    [['\u001b[2J'], `unknown command \`\\u{1b}[2J\`; expected one of ${COMMANDS}; see \`headwater --help\``],
  ])('rejects %j with one line and exit code 2', async (args, message) => {
    expect(await resultOf(args)).toEqual({ exitCode: 2, out: [], err: [`headwater: ${message}`] })
  })
})
