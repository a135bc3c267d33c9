import { describe, expect, it, onTestFinished } from 'vitest'
import {
  basinConfigOf,
  basinFields,
  streamConfigOf,
  streamFields,
} from '../../adapters/console/config/model.ts'
import {
  basinConfig,
  createBasin,
  createStream,
  locationsOf,
  streamConfig,
} from '../../adapters/console/config/requests.ts'
import { Connection } from '../../adapters/console/connection.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'

const TARGET = { url: 'http://localhost:8787', basinUrl: undefined, headerPrefix: 'svc' }

async function served() {
  const hw = await open({ storage: memory() })
  const connection = new Connection(createHandler(hw, { auth: 'none' }), TARGET)
  onTestFinished(async () => {
    connection.close()
    await hw.close()
  })
  return { hw, sender: connection.sender }
}

describe('the configuration of the console', () => {
  it('leaves the retention of new streams to the server unless one is chosen', async () => {
    const { hw, sender } = await served()
    await createBasin(sender, 'basin-of-defaults', basinConfigOf(basinFields()), undefined)
    await createStream(sender, 'basin-of-defaults', 'logs', streamConfigOf(streamFields()))
    const basin = hw.basin('basin-of-defaults')
    expect((await basin.config()).defaultStreamConfig).toEqual({})
    expect((await basin.stream('logs').config()).retentionPolicy).toEqual({ ageSeconds: 604_800 })
  })

  it('has the storage class, and keeps it when another setting changes', async () => {
    const { sender } = await served()
    const streams = { ...streamFields(), storageClass: 'standard' } as const
    await createBasin(sender, 'basin-of-classes', basinConfigOf({ ...basinFields(), streams }), undefined)
    const stored = basinFields(await basinConfig(sender, 'basin-of-classes'))
    expect(stored.streams.storageClass).toBe('standard')
    await createStream(sender, 'basin-of-classes', 'logs', streamConfigOf(streamFields()))
    const fields = streamFields(await streamConfig(sender, 'basin-of-classes', 'logs'))
    expect(fields).toMatchObject({ storageClass: 'standard', retention: 'age' })
    const changed = streamConfigOf({ ...fields, retention: 'infinite' })
    expect(await streamConfig(sender, 'basin-of-classes', 'logs', changed)).toMatchObject({
      storageClass: 'standard',
      retentionPolicy: 'infinite',
    })
  })

  it('creates a basin in one of the locations of the server', async () => {
    const { hw, sender } = await served()
    const [location] = await locationsOf(sender, new AbortController().signal)
    await createBasin(sender, 'basin-of-a-place', basinConfigOf(basinFields()), location)
    expect((await hw.listBasins()).items).toMatchObject([{ name: 'basin-of-a-place', location }])
    await expect(
      createBasin(sender, 'basin-elsewhere', basinConfigOf(basinFields()), 'no-such-location'),
    ).rejects.toMatchObject({ code: 'invalid' })
  })
})
