import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type IssueOptions, issueRequest } from '../../adapters/cli/issue-request.ts'
import { resourceSet, resourceSetText } from '../../adapters/cli/scope-options.ts'
import { accessTokenIdProblem } from '../../src/model/access.ts'
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

/** The body that goes over the wire. */
function bodyOf(options: Partial<IssueOptions>): unknown {
  const { body } = issueRequest({ ...NONE, ...options }, NOW)
  return JSON.parse(new TextDecoder().decode(body))
}

describe('the body of a token to issue', () => {
  it('has all that was given', () => {
    expect(
      bodyOf({
        id: 'ci "1"',
        basins: 'my-basin',
        streams: 'a/*',
        accessTokens: '*',
        ops: 'read, append',
        opGroups: 'account:read, basin:write,stream:write+read',
        expiresIn: '90s',
        autoPrefix: true,
      }),
    ).toEqual({
      id: 'ci "1"',
      expires_at: '2026-01-01T00:01:30Z',
      auto_prefix_streams: true,
      scope: {
        basins: { exact: 'my-basin' },
        streams: { prefix: 'a/' },
        access_tokens: { prefix: '' },
        ops: ['read', 'append'],
        op_groups: {
          account: { read: true, write: false },
          basin: { read: false, write: true },
          stream: { read: true, write: true },
        },
      },
    })
  })

  it('says of what was not given that there is none', () => {
    expect(bodyOf({ ops: 'list-basins' })).toEqual({
      id: 'ci',
      expires_at: null,
      auto_prefix_streams: false,
      scope: { basins: null, streams: null, access_tokens: null, ops: ['list-basins'], op_groups: {} },
    })
  })

  it('has a scope in JSON as it was given', () => {
    const scope = { streams: { exact: 'a*' }, ops: ['read'], later: [1] }
    expect(bodyOf({ scope: ` ${JSON.stringify(scope)}\n` })).toMatchObject({ id: 'ci', scope })
  })

  it.each([
    ['a*', { prefix: 'a' }],
    ['a**', { prefix: 'a*' }],
    ['*', { prefix: '' }],
    ['a*b', { exact: 'a*b' }],
    ['*a', { exact: '*a' }],
  ])('takes %s for %j', (streams, expected) => {
    expect(bodyOf({ streams, ops: 'read' })).toMatchObject({ scope: { streams: expected } })
  })

  it.each([
    ['1s', '2026-01-01T00:00:01Z'],
    ['15m', '2026-01-01T00:15:00Z'],
    ['24h', '2026-01-02T00:00:00Z'],
    ['030d', '2026-01-31T00:00:00Z'],
  ])('expires in %s', (expiresIn, expected) => {
    expect(bodyOf({ ops: 'read', expiresIn })).toMatchObject({ expires_at: expected })
  })

  it.each([
    ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00Z'],
    ['2030-01-31T12:00:00.5+02:00', '2030-01-31T10:00:00.5Z'],
  ])('expires at %s', (expiresAt, expected) => {
    expect(bodyOf({ ops: 'read', expiresAt })).toMatchObject({ expires_at: expected })
  })
})

describe('a resource set', () => {
  it('is shown as it is given', () => {
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
  ])('%j is shown as %s', (set, expected) => {
    expect(resourceSetText(set)).toBe(expected)
  })
})

const ISSUE = ['token', 'issue', 'ci', '--ops', 'read']
const GROUPS =
  '--op-groups must be a list such as account:read,basin:read+write,stream:write, of the levels account, basin and stream'
const WHOLE =
  '--scope is the whole scope: it does not go with --basins, --streams, --access-tokens, --ops and --op-groups'
const DURATION = '--expires-in must be a whole number above 0 with s, m, h or d, such as 90s, 15m, 24h or 30d'
const VISIBLE = 'must be 1 to 1024 characters of visible ASCII without spaces'
const NO_DATE = '`--expires-at` must be a date and time of RFC 3339'

describe('wrong options', () => {
  it.each<[string[], string]>([
    [['token', 'issue'], 'token issue needs ID. See headwater token issue --help'],
    [['token', 'issue', '--ops', 'read'], 'token issue needs ID. See headwater token issue --help'],
    [
      ['token', 'issue', 'a', 'b'],
      'token issue takes one ID, but more was given. See headwater token issue --help',
    ],
    [[...ISSUE, '--id', 'x'], 'unknown option --id. See headwater token issue --help'],
    [[...ISSUE, '--opps', 'x'], 'unknown option --opps. See headwater token issue --help'],
    [[...ISSUE, '--ops', 'append'], '--ops is given twice. See headwater token issue --help'],
    [[...ISSUE, '--json=1'], '--json takes no value but true or false. See headwater token issue --help'],
    [
      [...ISSUE, '--auto-prefix=yes'],
      '--auto-prefix takes no value but true or false. See headwater token issue --help',
    ],
    [['token', 'issue', '', '--ops', 'read'], 'access token id must not be empty'],
    [['token', 'issue', '..', '--ops', 'read'], 'access token id must not be "." or ".."'],
    [
      ['token', 'issue', 'x'.repeat(97), '--ops', 'read'],
      'access token id must not exceed 96 bytes in length',
    ],
    [['token', 'issue', 'ci'], 'a token must permit something: give --ops, --op-groups or --scope'],
    [
      ['token', 'issue', 'ci', '--basins', '*'],
      'a token must permit something: give --ops, --op-groups or --scope',
    ],
    [
      ['token', 'issue', 'ci', '--scope', '{}'],
      'a token must permit something: give --ops, --op-groups or --scope',
    ],
    [
      ['token', 'issue', 'ci', '--ops='],
      expect.stringMatching(/^--ops: there is no operation nothing\. Operations: list-basins, /),
    ],
    [
      ['token', 'issue', 'ci', '--ops', 'read,'],
      expect.stringMatching(/^--ops: there is no operation nothing\. /),
    ],
    [
      ['token', 'issue', 'ci', '--ops', 'reed'],
      expect.stringMatching(/^--ops: there is no operation reed\. /),
    ],
    [['token', 'issue', 'ci', '--op-groups='], GROUPS],
    [['token', 'issue', 'ci', '--op-groups', 'stream'], GROUPS],
    [['token', 'issue', 'ci', '--op-groups', 'stream:all'], GROUPS],
    [['token', 'issue', 'ci', '--op-groups', 'stream:read+read'], GROUPS],
    [['token', 'issue', 'ci', '--op-groups', 'river:read'], GROUPS],
    [['token', 'issue', 'ci', '--op-groups', 'stream:read,stream:write'], '--op-groups names stream twice'],
    [[...ISSUE, '--basins='], '--basins must not be empty: leave it out to match none, * matches all'],
    [[...ISSUE, '--basins', 'Big'], '--basins: basin name must begin with a lowercase letter or number'],
    [
      [...ISSUE, '--basins', 'big_*'],
      '--basins: basin prefix must comprise lowercase letters, numbers, and hyphens',
    ],
    [[...ISSUE, '--streams', '..'], '--streams: stream name must not be "." or ".."'],
    [[...ISSUE, '--streams', 'x'.repeat(513)], '--streams: stream name must not exceed 512 bytes in length'],
    [
      [...ISSUE, '--access-tokens', `${'x'.repeat(97)}*`],
      '--access-tokens: access token prefix must not exceed 96 bytes in length',
    ],
    [[...ISSUE, '--scope', '{"ops":["read"]}'], WHOLE],
    [['token', 'issue', 'ci', '--streams', 'a', '--scope', '{"ops":["read"]}'], WHOLE],
    [['token', 'issue', 'ci', '--scope='], '--scope: invalid JSON: unexpected end of the document'],
    [
      ['token', 'issue', 'ci', '--scope', 'read'],
      '--scope: invalid JSON: unexpected character at character 0',
    ],
    [
      ['token', 'issue', 'ci', '--scope', '{"ops":["read"]},"x":{}'],
      '--scope: invalid JSON: unexpected character at character 16',
    ],
    [['token', 'issue', 'ci', '--scope', '["read"]'], '--scope must be a JSON object'],
    [
      ['token', 'issue', 'ci', '--scope', '{"ops":["reed"]}'],
      expect.stringMatching(/^--scope: `ops` must be one of /),
    ],
    [['token', 'issue', 'ci', '--scope', '{"ops":[],"ops":["read"]}'], '--scope: duplicate member `ops`'],
    [
      ['token', 'issue', 'ci', '--scope', '{"basins":{}}'],
      '--scope: `basins` must have one of `exact` and `prefix`',
    ],
    [
      ['token', 'issue', 'ci', '--scope', '{"basins":{"exact":"Big"}}'],
      expect.stringMatching(/^--scope: basin name must begin/),
    ],
    [[...ISSUE, '--auto-prefix'], '--auto-prefix needs a prefix in --streams, as in --streams "tenant/*"'],
    [
      [...ISSUE, '--auto-prefix', '--streams', 'a'],
      '--auto-prefix needs a prefix in --streams, as in --streams "tenant/*"',
    ],
    [
      [...ISSUE, '--expires-in', '1d', '--expires-at', '2030-01-01T00:00:00Z'],
      '--expires-in does not go with --expires-at',
    ],
    ...['', '0s', '90', '1w', '1.5h', '+1h', '1 h', '1h30m', '1e3s'].map((text): [string[], string] => [
      [...ISSUE, `--expires-in=${text}`],
      DURATION,
    ]),
    [[...ISSUE, '--expires-in=-1h'], DURATION],
    [[...ISSUE, '--expires-in', '999999999999d'], '--expires-in must not reach beyond the year 9999'],
    ...['', 'tomorrow', '2030-01-01', '2030-02-30T00:00:00Z', '2030-01-01T00:00:00', '1893456000'].map(
      (text): [string[], string] => [[...ISSUE, `--expires-at=${text}`], NO_DATE],
    ),
    [
      ['token', 'list', 'a'],
      'token list takes options only, but more was given. See headwater token list --help',
    ],
    [
      ['token', 'list', '--prefix', 'x'.repeat(97)],
      '--prefix: access token prefix must not exceed 96 bytes in length',
    ],
    [['token', 'list', '--limit', '3'], 'unknown option --limit. See headwater token list --help'],
    [['token', 'revoke'], 'token revoke needs ID. See headwater token revoke --help'],
    [['token', 'revoke', '--'], 'token revoke needs ID. See headwater token revoke --help'],
    [['token', 'revoke', '--_=ab'], 'unknown option. See headwater token revoke --help'],
    [['token', 'revoke', 'a', '.'], 'access token id must not be "." or ".."'],
    [['token', 'revoke', 'a', ''], 'access token id must not be empty'],
    ...['', 'here', 'ftp://here', '/path', '127.0.0.1:8787'].map((text): [string[], string] => [
      ['token', 'list', `--url=${text}`],
      '--url must be an address such as http://127.0.0.1:8787',
    ]),
    ...['http://me:secret@here', 'http://here?x', 'http://here#x'].map((text): [string[], string] => [
      ['token', 'list', '--url', text],
      expect.stringMatching(/^--url must have no user name, password, query or fragment$/),
    ]),
    [['token', 'list', '--token='], `--token ${VISIBLE}`],
    [['token', 'list', '--token', 'with space'], `--token ${VISIBLE}`],
    [['token', 'list', '--token', 'x'.repeat(1025)], `--token ${VISIBLE}`],
    [['token', 'list', '--dir', 'd', '--url', 'http://here'], '--dir does not go with --url'],
    [['token', 'list', '--dir', 'd', '--token', 'x'], '--dir does not go with --token: its owner needs none'],
    [['token', 'list', '--dir='], '--dir must not be empty'],
  ])('%j: %s', async (args, message) => {
    const { exitCode, out, err } = await resultOf(args)
    expect([exitCode, out, err.length]).toEqual([2, [], 1])
    expect(err[0]!.slice('headwater: '.length)).toEqual(message)
  })

  it.each(['HEADWATER_TOKEN', 'HEADWATER_ROOT_TOKEN'])(
    'are told of %s without what it holds',
    async (name) => {
      const { exitCode, err } = await resultOf(['token', 'list'], { env: { [name]: 'two\nlines' } })
      expect([exitCode, err]).toEqual([2, [`headwater: ${name} ${VISIBLE}`]])
    },
  )
})
