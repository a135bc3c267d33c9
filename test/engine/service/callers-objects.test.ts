import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Engine, type Headwater, open } from '../../../src/index.ts'
import { testStorage } from '../../support/index.ts'

const SCOPE = {
  basins: { prefix: '' },
  streams: { prefix: '' },
  ops: ['create-stream', 'reconfigure-stream', 'get-stream-config', 'append'],
} as const

let hw: Engine
beforeEach(async () => {
  hw = await open({ storage: testStorage() })
  await hw.createBasin('basin')
})
afterEach(() => hw.close())

/** The call of a token's holder waits for a look-up of the token. */
const CALLERS: [string, () => Promise<Headwater>][] = [
  ['the owner', async () => hw],
  ['a token', async () => hw.as(await hw.issueAccessToken({ id: 'creator', scope: SCOPE }))],
]

describe.each(CALLERS)(
  'what %s passes and changes when the call has returned is stored as it was:',
  (_, by) => {
    it('configurations and metadata', async () => {
      const basin = (await by()).basin('basin')
      const config = { retentionPolicy: { ageSeconds: 0 } }
      const metadata = { name: '' }
      const calls: [string, () => Promise<unknown>][] = [
        ['created', () => basin.createStream('created', config, { metadata })],
        ['ensured', () => basin.ensureStream('ensured', config)],
        ['created', () => basin.stream('created').reconfigure(config)],
      ]
      for (const [index, [stream, call]] of calls.entries()) {
        const ageSeconds = 60 + index
        config.retentionPolicy.ageSeconds = ageSeconds
        metadata.name = 'before'
        const calling = call()
        config.retentionPolicy.ageSeconds = -5
        metadata.name = 'after'
        await calling
        expect(await basin.stream(stream).config()).toMatchObject({ retentionPolicy: { ageSeconds } })
      }
      const { items } = await hw.basin('basin').listStreams()
      expect(items[0]).toMatchObject({ name: 'created', metadata: { name: 'before' } })
    })

    it('first records', async () => {
      const basin = (await by()).basin('basin')
      const body = new TextEncoder().encode('before')
      const creating = basin.createStream('created', {}, { records: [body] })
      body.fill(0)
      await creating
      const { records } = await hw.basin('basin').stream('created').readBatch({ seqNum: 0 })
      expect(records[0]?.body).toBe('before')
    })
  },
)
