import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { titled } from '../support/titled.ts'
import { ROOT_TOKEN, resultOf, run, service, testStorages } from './run.ts'

const SECRET = 'a-secret-token-in-a-wrong-place'
/** An escape sequence that clears the screen. */
const CONTROL = '\u001b[2J'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'headwater-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const WORLD = {
  storages: testStorages(),
  fetch: () => Promise.reject(new Error('connection lost')),
}

describe('an argument that may be a token is redacted', () => {
  it.each([
    [['token', 'list', '--dir', SECRET], 'headwater: directory (redacted) does not exist'],
    [
      // An address, which needs no name lookup.
      ['serve', '--port', '0', '--host', `fe80::1%${SECRET}`],
      expect.stringMatching(/^headwater: cannot listen on port 0 of \(redacted\): listen \w+/),
    ],
    [
      ['token', 'list', '--url', `http://127.0.0.1:1/${SECRET}`],
      'headwater: cannot reach http://127.0.0.1:1/(redacted): connection lost',
    ],
    [['serve', '--storage', SECRET], expect.stringContaining('unknown storage (redacted)')],
    [['read', SECRET], expect.stringContaining('(redacted) is not the name of a stream')],
    [['read', `Big/${SECRET}`], expect.stringContaining('invalid basin `Big`')],
    [['read', `/${SECRET}`], expect.stringContaining('(redacted) has no basin')],
    [['append', 'a/b', '--file', SECRET], expect.stringContaining('file (redacted) does not exist')],
    [['append', 'a/b', '--header', SECRET], expect.stringContaining('invalid header (redacted)')],
  ])('%j', async (args, message) => {
    const { exitCode, out, err } = await resultOf(args, WORLD)
    expect([exitCode, out, err]).toEqual([expect.toBeOneOf([1, 2]), [], [message]])
    expect(err.join('\n')).not.toContain(SECRET)
  })

  it.each([
    ['in a directory', async () => ({ options: ['--dir', directory], world: WORLD })],
    [
      'of a service',
      async () => {
        const { world } = await service()
        return { options: [], world: { ...world, env: { HEADWATER_TOKEN: ROOT_TOKEN } } }
      },
    ],
  ])('as an id of revoke, %s: the message contains its position instead', async (_, place) => {
    const { options, world } = await place()
    expect(await resultOf(['token', 'revoke', 'short', SECRET, ...options], world)).toEqual({
      exitCode: 1,
      out: [],
      err: [
        'headwater: `short`: access token `short` not found (access_token_not_found)',
        'headwater: (id 2 of 2): access token `(id 2 of 2)` not found (access_token_not_found)',
        'headwater: 2 of 2 access tokens not revoked',
      ],
    })
  })
})

describe('escape sequences are not printed', () => {
  it.each(
    titled<[string[], string]>([
      [['token', 'list', '--dir', `/${CONTROL}gone`], '\\u{1b}[2Jgone'],
      // Too long for a name lookup.
      [['serve', '--port', '0', '--host', `${CONTROL}${'x'.repeat(300)}`], 'of (redacted)'],
      [['serve', '--storage', CONTROL], '\\u{1b}[2J'],
      [['token', 'revoke', CONTROL, '--dir', '.'], '\\u{1b}[2J'],
      [['token', 'list', '--url', `http://127.0.0.1:1/${CONTROL}`], 'http://127.0.0.1:1/%1B[2J'],
    ]),
  )('%s', async (_, args, message) => {
    const { out, err } = await resultOf(args, WORLD)
    expect(err.join('\n')).toContain(message)
    expect([...out, ...err].join('')).not.toContain('\u001b')
  })

  it('in the path of a directory and in internal errors', async () => {
    const failing = {
      manifest: memory().manifest,
      open: async (context: Parameters<ReturnType<typeof memory>['open']>[0]) =>
        Object.assign(await memory().open(context), {
          list: () => Promise.reject(new Error(`broken ${CONTROL}`)),
        }),
    }
    const storages = testStorages({ directories: new Map([[CONTROL, failing]]) })
    const { ready, out, err } = run(['serve', '--no-auth', '--port', '0', '--dir', CONTROL], { storages })
    expect((await fetch(`${await ready()}/v1/basins`)).status).toBe(500)
    expect(out).toContain('Storage: directory \\u{1b}[2J')
    expect(err.join('\n')).toContain('broken \\u{1b}[2J')
    // The lines of a stack trace stay separate.
    expect(err.join('\n')).toMatch(/\n {4}at /)
    expect([...out, ...err].join('')).not.toContain('\u001b')
  })
})
