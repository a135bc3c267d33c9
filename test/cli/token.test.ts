import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CliContext } from '../../adapters/cli/cli-context.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type Headwater, open, type Storage } from '../../src/index.ts'
import { counted, directoryKind, memoryKind, ROOT_TOKEN, resultOf, service } from './run.ts'

interface Place {
  /** Options that lead there. */
  readonly options: readonly string[]
  readonly world: Partial<CliContext>
  /** Looks at it as its owner. */
  inspect<Result>(look: (hw: Headwater) => Promise<Result>): Promise<Result>
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
    world: { storages: [memoryKind(), directoryKind(new Map([[directory, storage]]))], clock },
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

  it('issues a token that works, and prints nothing else', async () => {
    const { options, world, inspect } = await makePlace()
    const { exitCode, out, err } = await resultOf([...issue, ...options], world)
    expect([exitCode, out.length]).toEqual([0, 1])
    expect(err).toEqual([`Access token ci is issued: ${validity}. It is shown only now`])
    await inspect(async (hw) => {
      await hw.as(out[0]!).checkPermission('append', { basin: 'ci-1', stream: 's' })
      const elsewhere = hw.as(out[0]!).checkPermission('append', { basin: 'other', stream: 's' })
      await expect(elsewhere).rejects.toMatchObject({ code: 'permission_denied' })
      const other = hw.as(out[0]!).checkPermission('create-stream', { basin: 'ci-1', stream: 's' })
      await expect(other).rejects.toMatchObject({ code: 'permission_denied' })
    })
  })

  it('issues in JSON', async () => {
    const { options, world, inspect } = await makePlace()
    const { out } = await resultOf([...issue, ...options, '--json', '--expires-in', '1h'], world)
    expect(out).toHaveLength(1)
    const { id, access_token } = JSON.parse(out[0]!)
    expect(id).toBe('ci')
    await inspect((hw) => hw.as(access_token).checkPermission('read', { basin: 'ci-1', stream: 's' }))
  })

  it('tells when it expires, and what it does not reach', async () => {
    const { options, world } = await makePlace()
    const args = ['token', 'issue', 'a\u001bb', '--ops', 'read,list-streams', '--expires-in', '90s']
    expect((await resultOf([...args, ...options], world)).err).toEqual([
      'Access token a\\u{1b}b is issued: valid until 2025-01-01T00:01:30Z. It is shown only now',
      'Note: it reaches no basin, for want of --basins',
      'Note: it reaches no stream, for want of --streams',
    ])
    const account = ['token', 'issue', 'b', '--op-groups', 'account:read']
    expect((await resultOf([...account, ...options], world)).err).toHaveLength(1)
  })

  it('lists tokens, all pages of them, in a table', async () => {
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

  it('lists none', async () => {
    const { options, world } = await makePlace()
    expect((await resultOf(['token', 'list', ...options], world)).out).toEqual([
      'ID  EXPIRES  BASINS  STREAMS  ACCESS TOKENS  OPERATIONS  AUTO-PREFIX',
    ])
    expect((await resultOf(['token', 'list', ...options, '--json'], world)).out).toEqual([
      '{"access_tokens":[]}',
    ])
  })

  it('follows pages to the end', async () => {
    const { options, world, inspect } = await makePlace()
    const ids = Array.from({ length: 1_001 }, (_, i) => `token-${String(i).padStart(4, '0')}`)
    await inspect(async (hw) => {
      for (const id of ids) await hw.issueAccessToken({ id, scope: { ops: ['read'] } })
    })
    const { out } = await resultOf(['token', 'list', ...options], world)
    expect(out.slice(1).map((line) => line.split(' ')[0])).toEqual(ids)
  })

  it('revokes several, whatever is wrong with one of them', async () => {
    const { options, world, inspect } = await makePlace()
    const names = ['a', '--b', 'ö/ü?']
    const tokens = await inspect((hw) =>
      Promise.all(names.map((id) => hw.issueAccessToken({ id, scope: { ops: ['list-basins'] } }))),
    )
    const args = ['token', 'revoke', ...options, 'a', 'nobody', '--', '--b', 'ö/ü?', 'a']
    expect(await resultOf(args, world)).toEqual({
      exitCode: 1,
      out: ['revoked a', 'revoked --b', 'revoked ö/ü?'],
      err: [
        'headwater: nobody: access token `nobody` not found (access_token_not_found)',
        'headwater: 1 of 4 not revoked',
      ],
    })
    for (const token of tokens) {
      await inspect((hw) =>
        expect(hw.as(token).checkPermission('list-basins')).rejects.toMatchObject({ code: 'authn' }),
      )
    }
  })

  it('tells in JSON what was revoked', async () => {
    const { options, world, inspect } = await makePlace()
    await inspect((hw) => hw.issueAccessToken({ id: 'a', scope: { ops: ['read'] } }))
    const { exitCode, out } = await resultOf(['token', 'revoke', 'a', 'nobody', '--json', ...options], world)
    expect([exitCode, out]).toEqual([1, ['{"revoked":["a"]}']])
  })

  it.each([
    [
      ['token', 'issue', 'taken', '--ops', 'read'],
      'access token `taken` already exists (resource_already_exists)',
    ],
    [
      ['token', 'issue', 'late', '--ops', 'read', '--expires-at', '2020-01-01T00:00:00Z'],
      'expires_at must be in the future (invalid)',
    ],
  ])('prints the error of %j', async (args, message) => {
    const { options, world, inspect } = await makePlace()
    await inspect((hw) => hw.issueAccessToken({ id: 'taken', scope: { ops: ['read'] } }))
    expect(await resultOf([...args, ...options], world)).toEqual({
      exitCode: 1,
      out: [],
      err: [`headwater: ${message}`],
    })
  })
})

describe('headwater token in a directory', () => {
  it('closes what it opened, also after an error', async () => {
    const { storage, counts } = counted(memory())
    const storages = [memoryKind(), directoryKind(new Map([[directory, storage]]))]
    await resultOf(['token', 'list', '--dir', directory], { storages })
    expect(counts).toEqual({ opened: 1, closed: 1 })
    await resultOf(['token', 'revoke', 'nobody', '--dir', directory], { storages })
    expect(counts).toEqual({ opened: 2, closed: 2 })
  })

  it('makes no directory', async () => {
    const made = new Map<string, Storage>()
    const missing = join(directory, 'mistyped')
    const { exitCode, err } = await resultOf(['token', 'list', '--dir', missing], {
      storages: [memoryKind(), directoryKind(made)],
    })
    expect([exitCode, err]).toEqual([1, ['headwater: --dir: there is no directory (what was given)']])
  })

  it('says that there is no such storage yet', async () => {
    expect(await resultOf(['token', 'list', '--dir', directory])).toEqual({
      exitCode: 1,
      out: [],
      err: ['headwater: this version has no storage that keeps its data in a directory, only memory'],
    })
  })

  it('needs no token, and takes none from the environment', async () => {
    const storages = [memoryKind(), directoryKind()]
    const env = { HEADWATER_TOKEN: 'two\nlines' }
    expect((await resultOf(['token', 'list', '--dir', directory], { storages, env })).exitCode).toBe(0)
  })
})
