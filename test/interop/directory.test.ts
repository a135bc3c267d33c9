import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import type { Metric } from '../../src/model/metrics.ts'
import { usageMetrics } from '../../src/usage/index.ts'

const ROOT_TOKEN = 'the-root-token-of-this-directory'
const KEY = new Uint8Array(32).map((_, i) => i * 7 + 65)
const START = Date.UTC(2024, 0, 2, 3)

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** The content of all files in a directory. */
async function bytesIn(directory: string): Promise<Buffer> {
  const names = await readdir(directory)
  return Buffer.concat(await Promise.all(names.map((name) => readFile(join(directory, name)))))
}

it('tokens, encrypted records and usage survive a restart, and no secret is on the disk', async () => {
  const directory = await temporaryDirectory()
  const clock = virtualClock({ now: START })
  const openIt = () => open({ storage: filesystem(join(directory, 'data')), usage: usageMetrics(), clock })
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
  const range = { start: START, end: START + 60_000 }
  const throughput = (hw: typeof first) => hw.basin('vault').metrics({ set: 'append-throughput', ...range })
  const before: readonly Metric[] = await throughput(first)
  expect(before.find(({ name }) => name === 'express')).toMatchObject({
    values: [[START, 45 + 13 + 30]],
  })
  await clock.advance('90s')
  await first.close()

  const stored = await bytesIn(join(directory, 'data'))
  // The search finds text that may be stored.
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
  expect((await read(KEY)).records.map(({ body }) => body)).toEqual([
    'the plain body',
    'again',
    'a-fencing-token',
  ])
  await expect(read(new Uint8Array(32))).rejects.toMatchObject({ code: 'decryption_failed' })
  await expect(read()).rejects.toMatchObject({ code: 'encryption_key_invalid' })
  await expect(view.stream('letters', { encryptionKey: KEY }).append('x')).rejects.toMatchObject({
    code: 'permission_denied',
  })
  expect(await second.createRootToken()).toBeUndefined()
  await second.as(ROOT_TOKEN).revokeAccessToken('reader of letters')
  await expect(read(KEY)).rejects.toMatchObject({ code: 'authn' })
})
