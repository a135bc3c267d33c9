import { describe, expect, it, onTestFinished } from 'vitest'
import { basinConfigOf, streamConfigOf } from '../../adapters/console/config.tsx'
import { Connection } from '../../adapters/console/connection.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type BasinConfigInput, open, type StreamConfigInput } from '../../src/index.ts'

const TARGET = { url: 'http://localhost:8787', headerPrefix: 'svc' } as const

async function served() {
  const hw = await open({ storage: memory() })
  const connection = new Connection(createHandler(hw, { auth: 'none' }), TARGET)
  onTestFinished(async () => {
    connection.close()
    await hw.close()
  })
  return { hw, remote: connection.hw }
}

describe('the configuration of the console', () => {
  it('leaves the retention of new streams to the server unless one is chosen', async () => {
    const { hw, remote } = await served()
    await remote.createBasin('basin-of-defaults', basinConfigOf({}) as BasinConfigInput)
    await remote.basin('basin-of-defaults').createStream('logs', streamConfigOf({}) as StreamConfigInput)
    const basin = hw.basin('basin-of-defaults')
    expect((await basin.config()).defaultStreamConfig).not.toHaveProperty('retentionPolicy')
    expect((await basin.stream('logs').config()).retentionPolicy).toEqual({ ageSeconds: 604_800 })
  })

  it('has every setting of a stream, and returns to the defaults', async () => {
    const { remote } = await served()
    const chosen = {
      ...{ retention: '2 hours', deleteOnEmpty: '5 minutes', mode: 'arrival', uncapped: 'true' },
      storageClass: 'standard',
    }
    const config = {
      retentionPolicy: { ageSeconds: 7200 },
      deleteOnEmpty: { minAgeSeconds: 300 },
      timestamping: { mode: 'arrival', uncapped: true },
      storageClass: 'standard',
    }
    await remote.createBasin('basin-of-settings', basinConfigOf(chosen) as BasinConfigInput)
    const basin = remote.basin('basin-of-settings')
    expect((await basin.config()).defaultStreamConfig).toEqual(config)
    await basin.createStream('logs', streamConfigOf(chosen) as StreamConfigInput)
    const stream = basin.stream('logs')
    expect(await stream.config()).toMatchObject(config)
    const forever = streamConfigOf({ ...chosen, retention: 'forever' })
    expect(await stream.reconfigure(forever)).toMatchObject({ ...config, retentionPolicy: 'infinite' })
    expect((await basin.reconfigure(basinConfigOf({}))).defaultStreamConfig).not.toHaveProperty(
      'retentionPolicy',
    )
  })
})
