import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { KNOWN_STORAGES } from '../../adapters/cli/known-storages.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type Metric, open } from '../../src/index.ts'
import { run } from '../cli/run.ts'

const ROOT_TOKEN = 'the-root-token-of-this-directory'
const KEY = new Uint8Array(32).map((_, i) => i * 7 + 65)
const START = Date.UTC(2024, 0, 2, 3)

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Everything that is in the files of a directory. */
async function bytesIn(directory: string): Promise<Buffer> {
  const names = await readdir(directory)
  return Buffer.concat(await Promise.all(names.map((name) => readFile(join(directory, name)))))
}

it('tokens, encrypted records and usage survive a restart, and no secret is on the disk', async () => {
  const directory = await temporaryDirectory()
  const clock = virtualClock({ now: START })
  const openIt = () => open({ storage: filesystem(join(directory, 'data')), clock })
  const first = await openIt()
  await first.setRootToken(ROOT_TOKEN)
  await first.createBasin('vault', { streamCipher: 'aes-256-gcm' })
  await first.basin('vault').createStream('letters')
  const token = await first.issueAccessToken({
    id: 'reader of letters',
    scope: { basins: { exact: 'vault' }, streams: { prefix: '' }, opGroups: { stream: { read: true } } },
  })
  const letters = first.basin('vault').stream('letters', { encryptionKey: KEY })
  await letters.append([
    { body: 'the plain body', headers: [['plain name', 'plain value']] },
    { body: 'again' },
  ])
  await letters.fence('a-fencing-token')
  const range = { start: START / 1000, end: START / 1000 + 60 }
  const throughput = (hw: typeof first) => hw.basin('vault').metrics({ set: 'append-throughput', ...range })
  const before: readonly Metric[] = await throughput(first)
  expect(before.find(({ name }) => name === 'express')).toMatchObject({
    values: [[START / 1000, 45 + 13 + 30]],
  })
  await clock.advance('90s')
  await first.close()

  const stored = await bytesIn(join(directory, 'data'))
  // What may be found is found.
  for (const known of ['vault', 'letters', 'reader of letters', 'a-fencing-token']) {
    expect(stored.includes(known)).toBe(true)
  }
  const secrets = [
    ROOT_TOKEN,
    token,
    Buffer.from(token, 'base64').subarray(0, 32),
    KEY,
    Buffer.from(KEY).toString('base64'),
    Buffer.from(KEY).toString('hex'),
    ...['the plain body', 'plain name', 'plain value', 'again'],
  ]
  for (const secret of secrets) expect(stored.includes(Buffer.from(secret as Uint8Array))).toBe(false)

  const second = await openIt()
  onTestFinished(() => second.close())
  expect(await throughput(second)).toEqual(before)
  const view = second.as(token).basin('vault')
  const read = (encryptionKey?: Uint8Array) =>
    view.stream('letters', { encryptionKey }).readBatch({ seqNum: 0 })
  expect((await read(KEY)).text.map(({ body }) => body)).toEqual([
    'the plain body',
    'again',
    'a-fencing-token',
  ])
  await expect(read(new Uint8Array(32))).rejects.toMatchObject({ code: 'decryption_failed' })
  await expect(read()).rejects.toMatchObject({ code: 'bad_header' })
  await expect(view.stream('letters', { encryptionKey: KEY }).append('x')).rejects.toMatchObject({
    code: 'permission_denied',
  })
  expect(await second.createRootToken()).toBeUndefined()
  await second.as(ROOT_TOKEN).revokeAccessToken('reader of letters')
  await expect(read(KEY)).rejects.toMatchObject({ code: 'authn' })
})

it('the command line issues, lists and revokes on a directory, unless it is in use', async () => {
  const directory = await temporaryDirectory()
  await (await open({ storage: filesystem(directory) })).close()
  const command = async (...args: string[]) => {
    const { out, err, exitCode } = run(['token', ...args, '--dir', directory], { storages: KNOWN_STORAGES })
    return { code: await exitCode, out: out.join('\n'), err: err.join('\n') }
  }
  const issued = await command('issue', 'reader', '--ops', 'list-basins')
  expect(issued.code).toBe(0)
  const hw = await open({ storage: filesystem(directory) })
  expect((await hw.as(issued.out).listBasins()).items).toEqual([])
  expect(await command('list')).toMatchObject({ code: 1, err: expect.stringContaining(String(process.pid)) })
  await hw.close()

  expect((await command('list', '--json')).out).toContain('"id":"reader"')
  expect((await command('revoke', 'reader')).code).toBe(0)
  const again = await open({ storage: filesystem(directory) })
  onTestFinished(() => again.close())
  await expect(again.as(issued.out).listBasins()).rejects.toMatchObject({ code: 'authn' })
})
