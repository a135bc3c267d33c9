import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { directoryKind, memoryKind, ROOT_TOKEN, resultOf, run, service } from './run.ts'

const SECRET = 'a-secret-token-in-a-wrong-place'
/** What a terminal would obey: it clears the screen. */
const CONTROL = '\u001b[2J'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'headwater-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const WORLD = {
  storages: [memoryKind(), directoryKind()],
  fetch: () => Promise.reject(new Error('connection lost')),
}

describe('what is given in a wrong place is not told when it may be a token', () => {
  it.each([
    [['token', 'list', '--dir', SECRET], 'headwater: --dir: there is no directory (what was given)'],
    [
      // An address, for which no name service is asked.
      ['serve', '--port', '0', '--host', `fe80::1%${SECRET}`],
      expect.stringMatching(/^headwater: cannot listen on port 0 of \(what was given\): listen \w+/),
    ],
    [
      ['token', 'list', '--url', `http://127.0.0.1:1/${SECRET}`],
      'headwater: cannot reach http://127.0.0.1:1/(what was given): connection lost',
    ],
    [['serve', '--storage', SECRET], expect.stringContaining('unknown storage (what was given)')],
    [['serve', '--port', SECRET], expect.stringContaining('not (what was given)')],
    [
      ['token', 'issue', 'x', '--ops', SECRET],
      expect.stringContaining('there is no operation (what was given)'),
    ],
    [['token', 'issue', 'x', '--expires-in', SECRET], expect.stringContaining('--expires-in must be')],
    [['token', 'issue', 'x', '--expires-at', SECRET], expect.stringContaining('--expires-at')],
    [['token', 'issue', 'x', '--op-groups', SECRET], expect.stringContaining('--op-groups must be')],
    [['token', 'issue', 'x', '--scope', SECRET], expect.stringContaining('--scope: invalid JSON')],
    [[SECRET], expect.stringContaining('unknown command (what was given)')],
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
  ])('as an id at revoke, %s: its place tells which', async (_, place) => {
    const { options, world } = await place()
    expect(await resultOf(['token', 'revoke', 'short', SECRET, ...options], world)).toEqual({
      exitCode: 1,
      out: [],
      err: [
        'headwater: short: access token `short` not found (access_token_not_found)',
        'headwater: (id 2 of 2): access token `(id 2 of 2)` not found (access_token_not_found)',
        'headwater: 2 of 2 not revoked',
      ],
    })
  })
})

describe('what a terminal would obey is not printed', () => {
  it.each([
    [['token', 'list', '--dir', `/${CONTROL}gone`], '\\u{1b}[2Jgone'],
    // Too long to be asked for.
    [['serve', '--port', '0', '--host', `${CONTROL}${'x'.repeat(300)}`], 'of (what was given)'],
    [['serve', '--storage', CONTROL], '\\u{1b}[2J'],
    [['token', 'revoke', CONTROL, '--dir', '.'], '\\u{1b}[2J'],
    [['token', 'list', '--url', `http://127.0.0.1:1/${CONTROL}`], 'http://127.0.0.1:1/%1B[2J'],
  ])('%j', async (args, message) => {
    const { out, err } = await resultOf(args, WORLD)
    expect(err.join('\n')).toContain(message)
    expect([...out, ...err].join('')).not.toContain('\u001b')
  })

  it('of a directory, and of what goes wrong inside', async () => {
    const failing = {
      manifest: memory().manifest,
      open: async (context: Parameters<ReturnType<typeof memory>['open']>[0]) =>
        Object.assign(await memory().open(context), {
          list: () => Promise.reject(new Error(`broken ${CONTROL}`)),
        }),
    }
    const storages = [directoryKind(new Map([[CONTROL, failing]]))]
    const { ready, out, err } = run(['serve', '--open', '--port', '0', '--dir', CONTROL], { storages })
    expect((await fetch(`${await ready()}/v1/basins`)).status).toBe(500)
    expect(out).toContain('Storage: shelf in \\u{1b}[2J (stays)')
    expect(err.join('\n')).toContain('broken \\u{1b}[2J')
    // As a stack of lines.
    expect(err.join('\n')).toMatch(/\n {4}at /)
    expect([...out, ...err].join('')).not.toContain('\u001b')
  })
})
