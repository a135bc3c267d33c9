import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { SYSTEM_STREAM_CONFIG } from '../../../src/core/config.ts'
import type { AppendPipeline } from '../../../src/engine/log/append-pipeline.ts'
import { ReadAhead } from '../../../src/engine/log/block-source.ts'
import { ReadBudget } from '../../../src/engine/log/read-budget.ts'
import { PLAIN } from '../../../src/engine/log/record-codec.ts'
import { StreamLog } from '../../../src/engine/log/stream-log.ts'
import { open } from '../../../src/index.ts'
import { appendBatch } from '../../../src/model/append-input.ts'
import type { AppendAck } from '../../../src/model/info.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { type StreamDocument, streamKey } from '../../../src/storage/documents.ts'
import { emptyHead } from '../../../src/storage/heads.ts'
import { testClock, wrapped } from '../../support/index.ts'

it('appends follow a new configuration while followers receive earlier records', async () => {
  const data = memory()
  const clock = testClock({ now: 1_000_000 })
  const raw = await data.open({ clock, onLogChanged: () => {} })
  let isHolding = false
  const waiting: (() => void)[] = []
  const storage = wrapped(data, {}, (session: StorageSession) => ({
    async head(logId) {
      if (isHolding) await new Promise<void>((go) => waiting.push(go))
      return session.head(logId)
    },
  }))
  const [other, hw] = [await open({ storage: data, clock }), await open({ storage, clock })]
  await other.ensureBasin('basin')
  await other.basin('basin').ensureStream('s', { retentionPolicy: 'infinite' })
  const stream = hw.basin('basin').stream('s')
  const seen: string[] = []
  const following = stream.follow({ seqNum: 0 }).records$.subscribe(({ body }) => seen.push(body))
  await stream.append('a')
  await clock.settle()

  // It finds the head with the new record, and is held before it has read the new configuration.
  isHolding = true
  await other
    .basin('basin')
    .stream('s')
    .reconfigure({ retentionPolicy: { ageSeconds: 60 } })
  await other.basin('basin').stream('s').append('b')
  await clock.settle()
  waiting.shift()!()
  await clock.settle()
  expect(waiting.length).toBe(1)
  const appended = stream.append('c')
  await clock.settle()
  isHolding = false
  for (const go of waiting) go()
  await appended
  await clock.settle()

  const document = await raw.get('streams', streamKey('basin', 's'))
  const { logId } = document!.value as { readonly logId: string }
  const range = { from: { seqNum: 0 }, endSeqNum: 3, bytesMax: 10_000 }
  const expiries = (await raw.read(logId, range)).map(({ expiresAt }) => expiresAt)
  expect(expiries).toEqual([null, 1_060_000, 1_060_000])
  expect(seen).toEqual(['a', 'b', 'c'])
  following.unsubscribe()
  await Promise.all([hw.close(), other.close(), raw.close()])
})

it('ends its append pipeline when that is no longer needed and idle, and opens another', async () => {
  const clock = testClock()
  const session = await memory().open({ clock, onLogChanged: () => {} })
  await session.commit([{ kind: 'create-log', logId: 'log', epoch: 1, createdAt: 0 }])
  const pipelines: AppendPipeline[] = []
  let heads = 0
  let isHolding = false
  let release = () => {}
  const document: StreamDocument = {
    basin: 'basin',
    name: 's',
    logId: 'log',
    createdAt: 0,
    config: SYSTEM_STREAM_CONFIG,
    cipher: null,
    epoch: 1,
    creationKey: null,
  }
  const log = new StreamLog(
    {
      session: {
        async append(request) {
          if (isHolding)
            await new Promise<void>((resolve) => {
              release = resolve
            })
          return session.append(request)
        },
        head: (logId) => {
          heads++
          return session.head(logId)
        },
        read: (logId, range) => session.read(logId, range),
      },
      clock,
      limits: { followerLagBatches: 10, followerLagBytes: 1000 },
      readAhead: new ReadAhead(new ReadBudget(1000, clock)),
      isShared: () => false,
      newAppendId: () => 'id',
      trimGraceMs: 0,
      loadDocument: async () => document,
      onTrim: () => {},
      onFollow: () => {},
      onPipeline: (pipeline) => pipelines.push(pipeline),
      onDeleted: () => {},
      onLost: () => {},
    },
    document,
    emptyHead(1, 0),
    PLAIN,
  )
  const append = () =>
    new Promise<AppendAck>((acked, failed) => log.append(appendBatch(['body']), undefined, { acked, failed }))

  await append()
  await append()
  expect(pipelines).toHaveLength(1)

  pipelines[0]!.endWhenIdle()
  await append()
  expect(pipelines).toHaveLength(2)

  isHolding = true
  const pending = append()
  pipelines[1]!.endWhenIdle()
  expect(log.pendingAppends).toBe(1)
  isHolding = false
  release()
  await pending
  expect((await append()).end.seqNum).toBe(5)
  expect(pipelines).toHaveLength(3)

  // What the dropped pipeline had to read, the next one reads. An idle log opens none to remember that.
  expect(heads).toBe(0)
  log.invalidate()
  pipelines[2]!.endWhenIdle()
  log.invalidate()
  expect(pipelines).toHaveLength(3)
  expect((await append()).end.seqNum).toBe(6)
  expect([pipelines.length, heads]).toEqual([4, 1])

  isHolding = true
  const last = append()
  pipelines[3]!.endWhenIdle()
  release()
  expect((await last).end.seqNum).toBe(7)
  expect(pipelines).toHaveLength(4)
  await session.close()
})
