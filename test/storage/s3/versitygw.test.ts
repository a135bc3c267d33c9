// @module-tag slow

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { objectStorage } from '../../../adapters/storage/s3/index.ts'
import { openBucket } from '../../../adapters/storage/s3/open-bucket.ts'
import { S3Bucket } from '../../../adapters/storage/s3/s3-bucket.ts'
import { open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { FaultProxy } from './fault-proxy.ts'
import { CREDENTIALS, Gateway, HAS_VERSITYGW, withoutVersitygw } from './versitygw.ts'

/** `.ci/run` installs the gateway. */
describe.runIf(HAS_VERSITYGW)(`a bucket of a gateway${withoutVersitygw}`, () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await Gateway.start()
  })
  afterAll(() => gateway?.remove())

  const suite = conformanceSuite({
    manifest: objectStorage({ bucket: 'unopened' }).manifest,
    make: async () => {
      const bucket = await gateway.newBucket()
      return {
        storage: gateway.storage(bucket),
        reopen: async () => gateway.storage(bucket, { takeOver: true }),
        dispose: async () => {},
      }
    },
    notificationMsMax: 60_000,
    seeds: [1],
    randomOperations: 50,
  })
  for (const { title, skip, run } of suite) if (skip === undefined) test(title, run)

  test('an engine writes again once a gateway that was stopped runs again', async () => {
    const hw = await open({ storage: gateway.storage(await gateway.newBucket()) })
    const notes = hw.basin('my-app').stream('notes')
    await notes.append('first')
    await gateway.stop()
    const waiting = notes.append('second')
    await gateway.run()
    expect((await waiting).start.seqNum).toBe(1)
    await hw.close()
  })

  test('large files are stored in parts, also through a bad network', async () => {
    const proxy = await FaultProxy.start(gateway.endpoint, new Prng(1))
    onTestFinished(() => proxy.stop())
    proxy.delayMsMax = 200
    const bucket = await gateway.newBucket()
    const location = {
      bucket,
      prefix: '',
      endpoint: proxy.endpoint,
      region: 'us-east-1',
      credentials: async () => CREDENTIALS,
      fetch: globalThis.fetch,
    }
    const options = { takeOver: true, rollBytes: 20_000_000 }
    const storage: Storage = {
      manifest: gateway.storage(bucket).manifest,
      open: (context) => openBucket(location, options, context),
    }
    const first = await open({ storage })
    proxy.rate = 0.15
    const texts = Array.from({ length: 24 }, (_, i) => `${i}`.padEnd(900_000, 'x'))
    for (const text of texts) await first.basin('my-app').stream('notes').append(text)
    const objects = new S3Bucket(location)
    // Closing would give up the roll before.
    await vi.waitUntil(async () => (await objects.list('checkpoint-')).length > 0)
    await first.close()
    proxy.rate = 0
    const second = await open({ storage })
    const read = await second.basin('my-app').stream('notes').read().toArray()
    expect(read.map(({ body }) => body)).toEqual(texts)
    const segments = await objects.list('segment-')
    expect(segments.filter(({ key }) => key.endsWith('/000001'))).not.toEqual([])
    await second.close()
  })
})
