import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type IssueOptions,
  issuedToken,
  resourceSet,
  resourceSetText,
} from '../../adapters/cli/token-scope.ts'
import { type AccessTokenInput, accessTokenIdProblem } from '../../src/model/access.ts'
import { titled } from '../support/titled.ts'
import { resultOf } from './run.ts'

const NOW = Date.UTC(2026, 0, 1)
const NONE: IssueOptions = {
  id: 'ci',
  basins: undefined,
  streams: undefined,
  accessTokens: undefined,
  ops: undefined,
  opGroups: undefined,
  scope: undefined,
  expiresIn: undefined,
  expiresAt: undefined,
  autoPrefix: false,
}

function tokenOf(options: Partial<IssueOptions>): AccessTokenInput {
  return issuedToken({ ...NONE, ...options }, NOW)
}

describe('the token of token issue', () => {
  it('contains all options', () => {
    expect(
      tokenOf({
        id: 'ci "1"',
        basins: 'my-basin',
        streams: 'a/*',
        accessTokens: '*',
        ops: 'read, append',
        opGroups: 'account:read, basin:write,stream:write+read',
        expiresIn: '90s',
        autoPrefix: true,
      }),
    ).toMatchObject({
      id: 'ci "1"',
      expiresAt: new Date('2026-01-01T00:01:30Z'),
      autoPrefixStreams: true,
      scope: {
        basins: { exact: 'my-basin' },
        streams: { prefix: 'a/' },
        accessTokens: { prefix: '' },
        ops: ['read', 'append'],
        opGroups: {
          account: { read: true, write: false },
          basin: { read: false, write: true },
          stream: { read: true, write: true },
        },
      },
    })
  })

  it('contains false or nothing for omitted options', () => {
    expect(tokenOf({ ops: 'list-basins' })).toEqual({
      id: 'ci',
      autoPrefixStreams: false,
      scope: { ops: ['list-basins'], opGroups: { account: null, basin: null, stream: null } },
    })
  })

  it('contains the scope of --scope', () => {
    const scope = { streams: { exact: 'a*' }, ops: ['read'] as const }
    expect(tokenOf({ scope: ` ${JSON.stringify(scope)}\n` })).toMatchObject({ id: 'ci', scope })
  })

  it.each([
    ['a*', { prefix: 'a' }],
    ['a**', { prefix: 'a*' }],
    ['*', { prefix: '' }],
    ['a*b', { exact: 'a*b' }],
    ['*a', { exact: '*a' }],
  ])('reads %s as %j', (streams, expected) => {
    expect(tokenOf({ streams, ops: 'read' })).toMatchObject({ scope: { streams: expected } })
  })

  it.each([
    ['1s', '2026-01-01T00:00:01Z'],
    ['15m', '2026-01-01T00:15:00Z'],
    ['24h', '2026-01-02T00:00:00Z'],
    ['030d', '2026-01-31T00:00:00Z'],
  ])('expires in %s', (expiresIn, expected) => {
    expect(tokenOf({ ops: 'read', expiresIn })).toMatchObject({ expiresAt: new Date(expected) })
  })

  it.each([
    ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00Z'],
    ['2030-01-31T12:00:00.5+02:00', '2030-01-31T10:00:00.5Z'],
  ])('expires at %s', (expiresAt, expected) => {
    expect(tokenOf({ ops: 'read', expiresAt })).toMatchObject({ expiresAt: new Date(expected) })
  })
})

describe('a resource set', () => {
  it('is displayed as it was typed', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((id) => !accessTokenIdProblem(id))
    fc.assert(
      fc.property(text, (given) => {
        const set = resourceSet('accessTokens', given)!
        expect(resourceSetText(set)).toBe(given === '-' ? JSON.stringify(set) : given)
      }),
      { examples: [['-'], ['*'], ['a**']] },
    )
  })

  it.each([
    [null, '-'],
    [{ exact: '' }, '-'],
    [{ exact: 'a*' }, '{"exact":"a*"}'],
    [{ exact: '-' }, '{"exact":"-"}'],
    [{ prefix: '' }, '*'],
  ])('%j is displayed as %s', (set, expected) => {
    expect(resourceSetText(set)).toBe(expected)
  })
})

const ISSUE = ['token', 'issue', 'ci', '--ops', 'read']
const invalidGroup = (group: string) =>
  `invalid group \`${group}\` in \`--op-groups\`; expected a list such as \`account:read,basin:write,stream:read+write\``
const invalidDuration = (text: string) =>
  `invalid duration \`${text}\`; \`--expires-in\` must be a positive integer with s, m, h or d, such as 90s or 30d`
const NOTHING = 'the token would permit nothing; use `--ops`, `--op-groups` or `--scope`'
const AUTO_PREFIX = '`--auto-prefix` requires a prefix in `--streams`, such as `--streams "tenant/*"`'
const WHOLE_SCOPE =
  '`--scope` cannot be combined with `--basins`, `--streams`, `--access-tokens`, `--ops` and `--op-groups`'
const VISIBLE = 'must be 1 to 1,024 visible ASCII characters without spaces'
const seeHelp = (problem: string, command = 'token issue') =>
  `${problem}; see \`headwater ${command} --help\``
const noDate = (text: string) =>
  `invalid time \`${text}\`: \`--expires-at\` must be a date and time of RFC 3339`

describe('headwater token', () => {
  it.each(
    titled<[string[], string]>([
      [['token', 'issue'], seeHelp('`token issue` requires ID')],
      [['token', 'issue', '--ops', 'read'], seeHelp('`token issue` requires ID')],
      [['token', 'issue', 'a', 'b'], seeHelp('unexpected argument `b`: `token issue` accepts one ID')],
      [[...ISSUE, '--id', 'x'], seeHelp('unknown option `--id`')],
      [
        [...ISSUE, '--opps', 'x'],
        'unknown option `--opps`; did you mean `--ops`? See `headwater token issue --help`',
      ],
      [[...ISSUE, '--ops', 'append'], seeHelp('`--ops` is given twice')],
      [[...ISSUE, '--json=1'], seeHelp('`--json` accepts no value except `true` and `false`')],
      [
        [...ISSUE, '--auto-prefix=yes'],
        seeHelp('`--auto-prefix` accepts no value except `true` and `false`'),
      ],
      [['token', 'issue', '', '--ops', 'read'], 'access token id must not be empty'],
      [['token', 'issue', '..', '--ops', 'read'], 'access token id must not be "." or ".."'],
      [
        ['token', 'issue', 'x'.repeat(97), '--ops', 'read'],
        'access token id must not exceed 96 bytes in length',
      ],
      [['token', 'issue', 'ci'], NOTHING],
      [['token', 'issue', 'ci', '--basins', '*'], NOTHING],
      [['token', 'issue', 'ci', '--scope', '{}'], NOTHING],
      [
        ['token', 'issue', 'ci', '--ops='],
        expect.stringMatching(/^unknown operation `` in `--ops`; expected list-basins, /),
      ],
      [
        ['token', 'issue', 'ci', '--ops', 'read,'],
        expect.stringMatching(/^unknown operation `` in `--ops`; /),
      ],
      [
        ['token', 'issue', 'ci', '--ops', 'reed'],
        expect.stringMatching(/^unknown operation `reed` in `--ops`; /),
      ],
      [['token', 'issue', 'ci', '--op-groups='], invalidGroup('')],
      [['token', 'issue', 'ci', '--op-groups', 'stream'], invalidGroup('stream')],
      [['token', 'issue', 'ci', '--op-groups', 'stream:all'], invalidGroup('stream:all')],
      [['token', 'issue', 'ci', '--op-groups', 'basin:read+read'], invalidGroup('basin:read+read')],
      [['token', 'issue', 'ci', '--op-groups', 'river:read'], invalidGroup('river:read')],
      [
        ['token', 'issue', 'ci', '--op-groups', 'stream:read,stream:write'],
        '`--op-groups` contains `stream` twice',
      ],
      [
        [...ISSUE, '--basins='],
        '`--basins` must not be empty; omit it to match none, or use `*` to match all',
      ],
      [
        [...ISSUE, '--basins', 'Big'],
        'invalid `--basins` `Big`: basin name must begin with a lowercase letter or number',
      ],
      [
        [...ISSUE, '--basins', 'big_*'],
        'invalid `--basins` `big_*`: basin prefix must comprise lowercase letters, numbers, and hyphens',
      ],
      [[...ISSUE, '--streams', '..'], 'invalid `--streams` `..`: stream name must not be "." or ".."'],
      [
        [...ISSUE, '--streams', 'x'.repeat(513)],
        'invalid `--streams` (redacted): stream name must not exceed 512 bytes in length',
      ],
      [
        [...ISSUE, '--access-tokens', `${'x'.repeat(97)}*`],
        'invalid `--access-tokens` (redacted): access token prefix must not exceed 96 bytes in length',
      ],
      [[...ISSUE, '--scope', '{"ops":["read"]}'], WHOLE_SCOPE],
      [['token', 'issue', 'ci', '--streams', 'a', '--scope', '{"ops":["read"]}'], WHOLE_SCOPE],
      [['token', 'issue', 'ci', '--scope='], '`--scope`: invalid JSON: unexpected end of the document'],
      [
        ['token', 'issue', 'ci', '--scope', 'read'],
        '`--scope`: invalid JSON: unexpected character at character 0',
      ],
      [
        ['token', 'issue', 'ci', '--scope', '{"ops":["read"]},"x":{}'],
        '`--scope`: invalid JSON: unexpected character at character 16',
      ],
      [['token', 'issue', 'ci', '--scope', '["read"]'], '`--scope` must be a JSON object'],
      [
        ['token', 'issue', 'ci', '--scope', '{"ops":["reed"]}'],
        expect.stringMatching(/^`--scope`: `ops` must be one of /),
      ],
      [['token', 'issue', 'ci', '--scope', '{"ops":[],"ops":["read"]}'], '`--scope`: duplicate member `ops`'],
      [
        ['token', 'issue', 'ci', '--scope', '{"basins":{}}'],
        '`--scope`: `basins` must have one of `exact` and `prefix`',
      ],
      [
        ['token', 'issue', 'ci', '--scope', '{"basins":{"exact":"Big"}}'],
        expect.stringMatching(/^`--scope`: basin name must begin/),
      ],
      [[...ISSUE, '--auto-prefix'], AUTO_PREFIX],
      [[...ISSUE, '--auto-prefix', '--streams', 'a'], AUTO_PREFIX],
      [
        [...ISSUE, '--expires-in', '1d', '--expires-at', '2030-01-01T00:00:00Z'],
        '`--expires-in` cannot be combined with `--expires-at`',
      ],
      ...['', '0s', '90', '1w', '1.5h', '+1h', '1 h', '1h30m', '1e3s'].map((text): [string[], string] => [
        [...ISSUE, `--expires-in=${text}`],
        invalidDuration(text),
      ]),
      [[...ISSUE, '--expires-in=-1h'], invalidDuration('-1h')],
      [[...ISSUE, '--expires-in', '999999999999d'], '`--expires-in` must not exceed the year 9999'],
      ...['', 'tomorrow', '2030-01-01', '2030-02-30T00:00:00Z', '2030-01-01T00:00:00', '1893456000'].map(
        (text): [string[], string] => [[...ISSUE, `--expires-at=${text}`], noDate(text)],
      ),
      [
        [...ISSUE, `--expires-at=2030-01-01T00:00:00.${'0'.repeat(100)}Z`],
        'invalid time (redacted): `--expires-at` must be a date and time of RFC 3339',
      ],
      [
        ['token', 'list', 'a'],
        seeHelp('unexpected argument `a`: `token list` accepts only options', 'token list'),
      ],
      [
        ['token', 'list', '--prefix', 'x'.repeat(97)],
        '`--prefix`: access token prefix must not exceed 96 bytes in length',
      ],
      [['token', 'list', '--limit', '3'], seeHelp('unknown option `--limit`', 'token list')],
      [['token', 'revoke'], seeHelp('`token revoke` requires ID', 'token revoke')],
      [['token', 'revoke', '--'], seeHelp('`token revoke` requires ID', 'token revoke')],
      [['token', 'revoke', '--_=ab'], seeHelp('unknown option `--_`', 'token revoke')],
      [['token', 'revoke', 'a', '.'], 'access token id must not be "." or ".."'],
      [['token', 'revoke', 'a', ''], 'access token id must not be empty'],
      ...['', 'here', 'ftp://here', '/path', '127.0.0.1:8787'].map((text): [string[], string] => [
        ['token', 'list', `--url=${text}`],
        '`--url` must be an HTTP URL such as http://127.0.0.1:8787',
      ]),
      ...['http://me:secret@here', 'http://here?x', 'http://here#x'].map((text): [string[], string] => [
        ['token', 'list', '--url', text],
        '`--url` must not contain a user name, a password, a query or a fragment',
      ]),
      [['token', 'list', '--token='], `\`--token\` ${VISIBLE}`],
      [['token', 'list', '--token', 'with space'], `\`--token\` ${VISIBLE}`],
      [['token', 'list', '--token', 'x'.repeat(1025)], `\`--token\` ${VISIBLE}`],
      [['token', 'list', '--dir', 'd', '--url', 'http://here'], '`--dir` cannot be combined with `--url`'],
      [
        ['token', 'list', '--dir', 'd', '--token', 'x'],
        '`--dir` cannot be combined with `--token`: a storage needs no token',
      ],
      [
        ['token', 'list', '--storage', './d', '--url', 'http://here'],
        '`--storage` cannot be combined with `--url`',
      ],
      [
        ['token', 'list', '--storage', 'memory'],
        '`--storage memory` is empty in every new process; name a directory',
      ],
      [['token', 'list', '--dir='], '`--dir` must not be empty'],
    ]),
  )('rejects %s', async (_, args, message) => {
    const { exitCode, out, err } = await resultOf(args)
    expect([exitCode, out, err.length]).toEqual([2, [], 1])
    expect(err[0]!.slice('headwater: '.length)).toEqual(message)
  })

  it.each(['HEADWATER_TOKEN', 'HEADWATER_ROOT_TOKEN'])(
    'rejects an invalid %s without printing it',
    async (name) => {
      const { exitCode, err } = await resultOf(['token', 'list'], { env: { [name]: 'two\nlines' } })
      expect([exitCode, err]).toEqual([2, [`headwater: ${name} ${VISIBLE}`]])
    },
  )
})
