import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { directoryKind, memoryKind, resultOf } from './run.ts'

describe('headwater', () => {
  it.each([['--version'], ['-v']])('%s prints its version', async (option) => {
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
        '--open',
        '--root-token',
        'HEADWATER_ROOT_TOKEN',
        'processes',
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
        ...['--expires-in', '--expires-at', '--auto-prefix', '--url', '--token', '--dir', '--json'],
        ...['PREFIX*', '$(headwater token issue', 'HEADWATER_TOKEN', 'set-default-location'],
      ],
    ],
    [
      ['token', 'list'],
      ['--prefix', '--url', '--token', '--dir', '--json', 'HEADWATER_TOKEN'],
    ],
    [
      ['token', 'revoke'],
      ['ID', '--url', '--token', '--dir', '--json', 'HEADWATER_TOKEN'],
    ],
  ])('%j has help', async (command, words) => {
    for (const option of ['--help', '-h']) {
      const { exitCode, out, err } = await resultOf([...command, option])
      expect([exitCode, err]).toEqual([0, []])
      for (const word of words) expect(out.join('\n')).toContain(word)
    }
  })

  it('names the storages that there are', async () => {
    const { out } = await resultOf(['serve', '--help'], { storages: [memoryKind(), directoryKind()] })
    expect(out.join('\n')).toContain('memory, shelf')
  })

  it('takes what stands behind -- for names, not for options', async () => {
    const { err } = await resultOf(['token', 'revoke', '--', '--help'])
    expect(err).toEqual([expect.stringContaining('cannot reach')])
  })

  it.each([
    [[], 'no command given. Commands: serve, token, export, import, verify. See headwater --help'],
    [
      ['drink'],
      'unknown command drink. Commands: serve, token, export, import, verify. See headwater --help',
    ],
    [['token'], 'no command given. Commands: issue, list, revoke. See headwater token --help'],
    [['token', 'drink'], 'unknown command drink. Commands: issue, list, revoke. See headwater token --help'],
    [
      ['token', 'a-secret-of-somebody'],
      'unknown command (what was given). Commands: issue, list, revoke. See headwater token --help',
    ],
    [
      ['\u001b[2J'],
      'unknown command \\u{1b}[2J. Commands: serve, token, export, import, verify. See headwater --help',
    ],
  ])('refuses %j with one line and exit code 2', async (args, message) => {
    expect(await resultOf(args)).toEqual({ exitCode: 2, out: [], err: [`headwater: ${message}`] })
  })
})
