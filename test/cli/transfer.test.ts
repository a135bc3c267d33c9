// @module-tag slow

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type NodeServer, serve } from '../../adapters/node/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { sqlite } from '../../adapters/storage/sqlite/index.ts'
import { type Engine, fenceRecord, open, systemClock, trimRecord } from '../../src/index.ts'
import { DRIVERS } from '../storage/sqlite/databases.ts'
import { contentOf } from '../transfer/support.ts'
import { ended, program } from './program.ts'
import { resultOf } from './run.ts'

const ROOT_TOKEN = 'the-root-token-of-a-test'
const KEY = Buffer.alloc(32, 9).toString('base64')
const headwater = program()
const at = (name: string) => join(headwater.directory, name)

/** Runs a command in this process: starting another one takes longer than most of them. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const output = new PassThrough()
  const chunks: Buffer[] = []
  output.on('data', (chunk: Buffer) => chunks.push(chunk))
  const { exitCode, err } = await resultOf(args, {
    storages: { memory, filesystem, sqlite, postgres: () => memory() },
    env,
    fetch: (request) => fetch(request),
    output: () => output,
  })
  return { code: exitCode, out: Buffer.concat(chunks), err: err.map((line) => `${line}\n`).join('') }
}

/** Fills an engine with one stream of each kind. */
async function fill(hw: Engine): Promise<void> {
  await hw.createBasin('plain-basin', { createStreamOnAppend: true })
  const plain = hw.basin('plain-basin')
  await plain.createStream('events', { timestamping: { mode: 'client-require', uncapped: true } })
  for (let batch = 0; batch < 5; batch++) {
    const records = Array.from({ length: 700 }, (_, i) => ({
      body: i % 3 === 0 ? Uint8Array.of(0xff, i & 0xff) : `record ${batch} ${i}`,
      headers: i % 5 === 0 ? [['n', String(i)] as const] : [],
      timestamp: batch * 1000 + i,
    }))
    await plain.stream('events').append(records)
  }
  await plain.createStream('trimmed')
  await plain.stream('trimmed').append(['gone', 'gone too', 'stays', fenceRecord('the owner'), trimRecord(2)])
  await plain.createStream('empty')
  await hw.createBasin('sealed', { streamCipher: 'aes-256-gcm' })
  await hw.basin('sealed').createStream('s')
  await hw.basin('sealed').stream('s', { encryptionKey: KEY }).append(['secret'])
}

const hasSqlite = Object.keys(DRIVERS).length > 0
it.skipIf(!hasSqlite)(
  'keeps streams in the file of `--storage sqlite:FILE`, and rejects a missing one',
  async () => {
    const storage = ['--storage', `sqlite:${at('streams.db')}`]
    const missing = await run(['read', 'my-basin/events', ...storage])
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('streams.db` does not exist') })
    const hw = await open({ storage: sqlite(at('streams.db')) })
    await hw.basin('my-basin').stream('events').append('one')
    await hw.close()
    const { code, out } = await run(['read', 'my-basin/events', ...storage])
    expect([code, String(out)]).toEqual([0, 'one\n'])
  },
)

describe('headwater export and import', () => {
  let source: string
  let whole: string
  const services: { hw: Engine; server: NodeServer }[] = []

  async function service(): Promise<{ hw: Engine; url: string }> {
    const hw = await open({ storage: memory(), autoCreate: false, trimGraceMs: 0 })
    await hw.setRootToken(ROOT_TOKEN)
    const server = await serve(hw)
    services.push({ hw, server })
    return { hw, url: server.url }
  }
  const KEYS = { HEADWATER_ENCRYPTION_KEY: KEY, HEADWATER_TOKEN: ROOT_TOKEN }

  beforeAll(async () => {
    source = at('source')
    // The grace period of its trim is over when the exports begin.
    const clock = { ...systemClock, now: () => systemClock.now() - 60_000 }
    const hw = await open({ storage: filesystem(source), autoCreate: false, clock })
    await fill(hw)
    await hw.close()
    const { code, out, err } = await ended(headwater.start(['export', '--dir', source], KEYS))
    expect(err).toBe('Exported 2 basins, 4 streams, 3,504 records\n')
    expect(code).toBe(0)
    whole = out.toString()
  })
  afterAll(async () => {
    await Promise.all(services.flatMap(({ hw, server }) => [server.close(), hw.close()]))
  })

  it('copies a directory to a service, and from there through a pipe to another', async () => {
    const first = await service()
    const file = at('plain.ndjson')
    await run(['export', '--dir', source, '--out', file], KEYS)
    expect(await run(['import', file, '--url', first.url], KEYS)).toMatchObject({ code: 0 })

    const second = await service()
    const from = headwater.start(['export', '--url', first.url], KEYS)
    const to = headwater.start(['import', '--url', second.url], KEYS)
    from.stdout!.pipe(to.stdin!)
    const [exported, imported] = await Promise.all([ended(from), ended(to)])
    expect(exported.code).toBe(0)
    expect(imported).toMatchObject({ code: 0, err: 'Imported 2 basins, 4 streams, 3,504 records\n' })
    const again = await run(['export', '--url', second.url], KEYS)
    expect(contentOf(again.out.toString())).toBe(contentOf(whole))
  })

  it('stops at a signal and continues later', async () => {
    const input = headwater.start(['import', '--dir', at('stopped')], KEYS)
    const end = ended(input)
    const header = whole.indexOf('record 2 0"')
    input.stdin!.on('error', () => {}).write(whole.slice(0, header))
    // Before the signal, the pipe has been read, and the stream exists.
    await vi.waitFor(() => stat(at('stopped')))
    input.kill('SIGINT')
    expect(await end).toMatchObject({ code: 130, err: expect.stringContaining('continue with `--resume`') })
    const rest = headwater.start(['import', '-', '--resume', '--dir', at('stopped')], KEYS)
    const done = ended(rest)
    // It may not read all of it.
    rest.stdin!.on('error', () => {}).end(whole)
    expect(await done).toMatchObject({ code: 0 })
    const again = await run(['export', '--dir', at('stopped')], KEYS)
    expect(contentOf(again.out.toString())).toBe(contentOf(whole))
  })

  it('exports no tokens and no keys', () => {
    expect(whole).not.toContain(ROOT_TOKEN)
    expect(whole).not.toContain(KEY)
  })
})
