import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { counted, ROOT_TOKEN, resultOf, service, testStorages } from './run.ts'

interface Place {
  /** Options that select it. */
  readonly options: readonly string[]
  readonly world: Partial<CliContext>
  /** Runs `look` with an engine on the same storage. */
  inspect<Result>(look: (hw: Engine) => Promise<Result>): Promise<Result>
}

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'headwater-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function atService(): Promise<Place> {
  const { hw, world } = await service({ clock: virtualClock() })
  return {
    options: [],
    world: { ...world, env: { HEADWATER_ROOT_TOKEN: ROOT_TOKEN } },
    inspect: (look) => look(hw),
  }
}

async function inDirectory(): Promise<Place> {
  const storage = memory()
  const clock = virtualClock()
  return {
    options: ['--dir', directory],
    world: { storages: testStorages({ directories: new Map([[directory, storage]]) }), clock },
    inspect: async (look) => {
      const hw = await open({ storage, clock })
      try {
        return await look(hw)
      } finally {
        await hw.close()
      }
    },
  }
}

describe.each([
  ['at a service', atService, 'valid as long as the token that issued it'],
  ['in a directory', inDirectory, 'valid until it is revoked'],
] as const)('headwater token %s', (_, makePlace, validity) => {
  const issue = [
    'token',
    'issue',
    'ci',
    '--basins',
    'ci-*',
    '--streams',
    '*',
    '--op-groups',
    'stream:read+write',
  ]

  it('issues a token within its scope, and prints only the token', async () => {
    const { options, world, inspect } = await makePlace()
    const { exitCode, out, err } = await resultOf([...issue, ...options], world)
    expect([exitCode, out.length]).toEqual([0, 1])
    expect(err).toEqual([`Issued access token ci, ${validity}. It is not shown again.`])
    await inspect(async (hw) => {
      await hw.asHolder(out[0]!, ['append'], { basin: 'ci-1', stream: 's' })
      const elsewhere = hw.asHolder(out[0]!, ['append'], { basin: 'other', stream: 's' })
      await expect(elsewhere).rejects.toMatchObject({ code: 'permission_denied' })
      const other = hw.asHolder(out[0]!, ['create-stream'], { basin: 'ci-1', stream: 's' })
      await expect(other).rejects.toMatchObject({ code: 'permission_denied' })
    })
  })

  it('prints an issued token as JSON', async () => {
    const { options, world, inspect } = await makePlace()
    const { out } = await resultOf([...issue, ...options, '--json', '--expires-in', '1h'], world)
    expect(out).toHaveLength(1)
    const { id, access_token } = JSON.parse(out[0]!)
    expect(id).toBe('ci')
    await inspect((hw) => hw.asHolder(access_token, ['read'], { basin: 'ci-1', stream: 's' }))
  })

  it('prints the expiry and notes about an empty scope', async () => {
    const { options, world } = await makePlace()
    const args = ['token', 'issue', 'a\u001bb', '--ops', 'read,list-streams', '--expires-in', '90s']
    expect((await resultOf([...args, ...options], world)).err).toEqual([
      'Issued access token a\\u{1b}b, valid until 2025-01-01T00:01:30Z. It is not shown again.',
      'Note: no basin is in its scope; use --basins to add some',
      'Note: no stream is in its scope; use --streams to add some',
    ])
    const account = ['token', 'issue', 'b', '--op-groups', 'account:read']
    expect((await resultOf([...account, ...options], world)).err).toHaveLength(1)
  })

  it('lists tokens in a table or as JSON', async () => {
    const { options, world, inspect } = await makePlace()
    await inspect(async (hw) => {
      await hw.issueAccessToken({
        id: 'a',
        expiresAt: new Date('2030-01-01T00:00:00Z'),
        autoPrefixStreams: true,
        scope: { basins: { exact: 'one' }, streams: { prefix: 't/' }, ops: ['read', 'append'] },
      })
      await hw.issueAccessToken({
        id: 'b\u202e',
        scope: {
          accessTokens: { prefix: '' },
          ops: ['trim'],
          opGroups: { account: { read: true, write: true }, stream: { read: true } },
        },
      })
    })
    const { exitCode, out, err } = await resultOf(['token', 'list', ...options], world)
    expect([exitCode, err]).toEqual([0, []])
    expect(out).toEqual([
      'ID         EXPIRES               BASINS  STREAMS  ACCESS TOKENS  OPERATIONS                           AUTO-PREFIX',
      'a          2030-01-01T00:00:00Z  one     t/*      -              append,read                          yes',
      'b\\u{202e}  never                 -       -        *              account:read+write,stream:read,trim  no',
    ])
    const json = await resultOf(['token', 'list', ...options, '--json', '--prefix', 'a'], world)
    expect(JSON.parse(json.out.join('\n'))).toEqual({
      access_tokens: [
        {
          id: 'a',
          expires_at: '2030-01-01T00:00:00Z',
          auto_prefix_streams: true,
          scope: {
            basins: { exact: 'one' },
            streams: { prefix: 't/' },
            access_tokens: null,
            op_groups: {
              account: { read: false, write: false },
              basin: { read: false, write: false },
              stream: { read: false, write: false },
            },
            ops: ['append', 'read'],
          },
        },
      ],
    })
  })

  it('prints only headings if there are no tokens', async () => {
    const { options, world } = await makePlace()
    expect((await resultOf(['token', 'list', ...options], world)).out).toEqual([
      'ID  EXPIRES  BASINS  STREAMS  ACCESS TOKENS  OPERATIONS  AUTO-PREFIX',
    ])
    expect((await resultOf(['token', 'list', ...options, '--json'], world)).out).toEqual([
      '{"access_tokens":[]}',
    ])
  })

  it('lists all pages', async () => {
    const { options, world, inspect } = await makePlace()
    const ids = Array.from({ length: 1_001 }, (_, i) => `token-${String(i).padStart(4, '0')}`)
    await inspect(async (hw) => {
      for (const id of ids) await hw.issueAccessToken({ id, scope: { ops: ['read'] } })
    })
    const { out } = await resultOf(['token', 'list', ...options], world)
    expect(out.slice(1).map((line) => line.split(' ')[0])).toEqual(ids)
  })

  it('revokes all tokens that exist', async () => {
    const { options, world, inspect } = await makePlace()
    const names = ['a', '--b', 'ö/ü?']
    const tokens = await inspect((hw) =>
      Promise.all(names.map((id) => hw.issueAccessToken({ id, scope: { ops: ['list-basins'] } }))),
    )
    const args = ['token', 'revoke', ...options, 'a', 'missing', '--', '--b', 'ö/ü?', 'a']
    expect(await resultOf(args, world)).toEqual({
      exitCode: 1,
      out: ['Revoked a', 'Revoked --b', 'Revoked ö/ü?'],
      err: [
        'headwater: `missing`: access token `missing` not found (access_token_not_found)',
        'headwater: 1 of 4 access tokens not revoked',
      ],
    })
    for (const token of tokens) {
      await inspect((hw) =>
        expect(hw.asHolder(token, ['list-basins'])).rejects.toMatchObject({ code: 'authn' }),
      )
    }
  })

  it('reports a single token that does not exist on one line', async () => {
    const { options, world } = await makePlace()
    expect(await resultOf(['token', 'revoke', ...options, 'missing'], world)).toEqual({
      exitCode: 1,
      out: [],
      err: ['headwater: `missing`: access token `missing` not found (access_token_not_found)'],
    })
  })

  it('prints revoked ids as JSON', async () => {
    const { options, world, inspect } = await makePlace()
    await inspect((hw) => hw.issueAccessToken({ id: 'a', scope: { ops: ['read'] } }))
    const { exitCode, out } = await resultOf(['token', 'revoke', 'a', 'missing', '--json', ...options], world)
    expect([exitCode, out]).toEqual([1, ['{"revoked":["a"]}']])
  })

  it.each([
    [
      ['token', 'issue', 'taken', '--ops', 'read'],
      'headwater: access token `taken` already exists (resource_already_exists)',
    ],
    [
      ['token', 'issue', 'late', '--ops', 'read', '--expires-at', '2020-01-01T00:00:00Z'],
      // A service names the wire field, an engine the API field.
      expect.stringMatching(/^headwater: `(expires_at|expiresAt)` must be in the future \(invalid\)$/),
    ],
  ])('prints the error of %j', async (args, message) => {
    const { options, world, inspect } = await makePlace()
    await inspect((hw) => hw.issueAccessToken({ id: 'taken', scope: { ops: ['read'] } }))
    expect(await resultOf([...args, ...options], world)).toEqual({
      exitCode: 1,
      out: [],
      err: [message],
    })
  })
})

describe('headwater token in a directory', () => {
  it('closes the storage, also after an error', async () => {
    const { storage, counts } = counted(memory())
    const storages = testStorages({ directories: new Map([[directory, storage]]) })
    await resultOf(['token', 'list', '--dir', directory], { storages })
    expect(counts).toEqual({ opened: 1, closed: 1 })
    await resultOf(['token', 'revoke', 'missing', '--dir', directory], { storages })
    expect(counts).toEqual({ opened: 2, closed: 2 })
  })

  it('does not create a directory', async () => {
    const made = new Map<string, Storage>()
    const missing = join(directory, 'mistyped')
    const { exitCode, err } = await resultOf(['token', 'list', '--dir', missing], {
      storages: testStorages({ directories: made }),
    })
    expect([exitCode, err]).toEqual([1, [`headwater: directory \`${missing}\` does not exist`]])
  })

  it('reports a file in place of a directory', async () => {
    const { exitCode, err } = await resultOf(['token', 'list', '--storage', './package.json'])
    expect([exitCode, err]).toEqual([1, ['headwater: `./package.json` is not a directory']])
  })

  it('ignores tokens in the environment', async () => {
    const storages = testStorages()
    const env = { HEADWATER_TOKEN: 'two\nlines' }
    expect((await resultOf(['token', 'list', '--dir', directory], { storages, env })).exitCode).toBe(0)
  })
})
