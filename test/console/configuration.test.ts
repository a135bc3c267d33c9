import { describe, expect, it, onTestFinished } from 'vitest'
import { createBasinIn, locationsOf } from '../../adapters/console/basins/basin-list.tsx'
import {
  basinChangeOf,
  basinFields,
  streamChangeOf,
  streamFields,
} from '../../adapters/console/config/model.ts'
import { Connection } from '../../adapters/console/connection.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, type StreamConfigInput } from '../../src/index.ts'

const TARGET = { url: 'http://localhost:8787', basinUrl: undefined, headerPrefix: 'svc' } as const

async function served() {
  const hw = await open({ storage: memory() })
  const connection = new Connection(createHandler(hw, { auth: 'none' }), TARGET)
  onTestFinished(async () => {
    connection.close()
    await hw.close()
  })
  return { hw, remote: connection.hw, sender: connection.sender }
}

describe('the configuration of the console', () => {
  const inherited = () => streamChangeOf(streamFields()) as StreamConfigInput

  it('leaves the retention of new streams to the server unless one is chosen', async () => {
    const { hw, remote, sender } = await served()
    await createBasinIn(undefined, sender, 'basin-of-defaults', basinChangeOf(basinFields()))
    await remote.basin('basin-of-defaults').createStream('logs', inherited())
    const basin = hw.basin('basin-of-defaults')
    expect((await basin.config()).defaultStreamConfig).toEqual({})
    expect((await basin.stream('logs').config()).retentionPolicy).toEqual({ ageSeconds: 604_800 })
  })

  it('has the storage class, and keeps it when another setting changes', async () => {
    const { remote, sender } = await served()
    const streams = { ...streamFields(), storageClass: 'standard' } as const
    await createBasinIn(undefined, sender, 'basin-of-classes', basinChangeOf({ ...basinFields(), streams }))
    const basin = remote.basin('basin-of-classes')
    expect(basinFields(await basin.storedConfig()).streams.storageClass).toBe('standard')
    await basin.createStream('logs', inherited())
    const fields = streamFields(await basin.stream('logs').storedConfig())
    expect(fields).toMatchObject({ storageClass: 'standard', retention: 'age' })
    const changed = streamChangeOf({ ...fields, retention: 'infinite' })
    expect(await basin.stream('logs').reconfigureStored(changed)).toMatchObject({
      storageClass: 'standard',
      retentionPolicy: 'infinite',
    })
  })

  it('creates a basin in one of the locations of the server', async () => {
    const { hw, sender } = await served()
    const [location] = await locationsOf(sender, new AbortController().signal)
    await createBasinIn(location, sender, 'basin-of-a-place', basinChangeOf(basinFields()))
    expect((await hw.listBasins()).items).toMatchObject([{ name: 'basin-of-a-place', location }])
    await expect(
      createBasinIn('no-such-location', sender, 'basin-elsewhere', basinChangeOf(basinFields())),
    ).rejects.toMatchObject({ code: 'invalid' })
  })
})
