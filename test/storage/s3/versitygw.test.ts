// @module-tag slow

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { objectStorage } from '../../../adapters/storage/s3/index.ts'
import { open } from '../../../src/index.ts'
import { Gateway, HAS_VERSITYGW, withoutVersitygw } from './versitygw.ts'

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
})
