import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { type Engine, open } from '../../src/index.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { STORAGE_KIND, testClock, testStorage } from '../support/index.ts'

async function opened(storage: Storage): Promise<Engine> {
  const hw = await open({ storage, clock: testClock(), autoCreate: false })
  onTestFinished(() => hw.close())
  return hw
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-restore-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

const START = { seqNum: 1_000_000, timestamp: 77 }

it('a restored stream starts at its position, also after a restart', async () => {
  const storage = STORAGE_KIND === 'memory' ? filesystem(await temporaryDirectory()) : testStorage()
  const first = await opened(storage)
  await first.createBasin('basin-a', { defaultStreamConfig: { timestamping: { mode: 'client-require' } } })
  const info = await first.restoreStream(
    { basin: 'basin-a', stream: 's' },
    { start: START, fencingToken: 'me' },
  )
  expect(info).toMatchObject({ name: 's', cipher: null })
  await first.close()

  const hw = await opened(storage)
  const stream = hw.basin('basin-a').stream('s')
  expect(await stream.checkTail()).toEqual(START)
  expect(await stream.readBatch({ seqNum: 0 })).toMatchObject({ records: [], tail: START })
  const record = [{ body: 'x', timestamp: 5 }]
  await expect(stream.append(record, { fencingToken: '' })).rejects.toMatchObject({ fencingToken: 'me' })
  expect(await stream.append(record, { fencingToken: 'me', matchSeqNum: 1_000_000 })).toMatchObject({
    start: START,
  })
  expect((await stream.readBatch({ seqNum: 0 })).records).toMatchObject([
    { seqNum: 1_000_000, timestamp: 77, body: 'x' },
  ])
  expect((await hw.basin('basin-a').stream('s').config()).timestamping.mode).toBe('client-require')
})

it('rejects the restoration of an existing stream, with or without records', async () => {
  const hw = await opened(testStorage())
  await hw.createBasin('basin-a')
  const basin = hw.basin('basin-a')
  await basin.createStream('s')
  await expect(hw.restoreStream({ basin: basin.name, stream: 's' }, { start: START })).rejects.toMatchObject({
    code: 'resource_already_exists',
  })
  expect(await basin.stream('s').checkTail()).toEqual({ seqNum: 0, timestamp: 0 })
})

it.each([
  [{ start: { seqNum: 2 ** 53, timestamp: 0 } }, 'start.seqNum'],
  [{ start: { seqNum: -1, timestamp: 0 } }, 'start.seqNum'],
  [{ start: { seqNum: 0, timestamp: 0.5 } }, 'start.timestamp'],
  [{ start: START, fencingToken: 'x'.repeat(37) }, 'fencingToken'],
  [{ start: START, cipher: 'rot13' as 'aes-256-gcm' }, 'cipher'],
])('rejects %j', async (restored, field) => {
  const hw = await opened(testStorage())
  await hw.createBasin('basin-a')
  await expect(hw.restoreStream({ basin: 'basin-a', stream: 's' }, restored)).rejects.toMatchObject({
    code: 'invalid',
    field,
  })
})

it('requires the owner and an existing basin', async () => {
  const hw = await opened(testStorage())
  await hw.setRootToken('the-root-token-of-a-test')
  const root = hw.as('the-root-token-of-a-test')
  await root.createBasin('basin-a')
  await expect(root.restoreStream({ basin: 'basin-a', stream: 's' }, { start: START })).rejects.toMatchObject(
    {
      code: 'permission_denied',
    },
  )
  await expect(hw.restoreStream({ basin: 'basin-b', stream: 's' }, { start: START })).rejects.toMatchObject({
    code: 'basin_not_found',
  })
})
