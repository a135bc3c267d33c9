import { describe, expect, it } from 'vitest'
import { all, bodies, strings, take } from './records.ts'
import { clientOf, freshName, serviceOfFile, TRANSPORTS } from './support.ts'

const { server } = await serviceOfFile()

describe.each(TRANSPORTS)('a stream that is created on first use, by $name', ({ force, options }) => {
  const s2 = clientOf(server.url, options)

  async function newBasin(config: { createStreamOnAppend?: boolean; createStreamOnRead?: boolean }) {
    const name = freshName('basin')
    const defaults = {
      defaultStreamConfig: { storageClass: 'standard', timestamping: { uncapped: true } },
    } as const
    await s2.basins.create({ basin: name, config: { ...defaults, ...config } })
    const basin = s2.basin(name)
    return {
      config: (stream: string) => basin.streams.getConfig({ stream }),
      handle: (stream: string) => basin.stream(stream, { forceTransport: force }),
    }
  }

  const streamConfig = { timestamping: { mode: 'arrival' }, retentionPolicy: { ageSecs: 77 } } as const
  const merged = {
    storageClass: 'standard',
    timestamping: { mode: 'arrival', uncapped: true },
    retentionPolicy: { ageSecs: 77 },
  }

  it('is created by an append, with the configuration of the request', async () => {
    const { handle, config } = await newBasin({ createStreamOnAppend: true })
    await handle('plain').append(strings('x'))
    expect(await config('plain')).toMatchObject({
      storageClass: 'standard',
      timestamping: { mode: 'client-prefer' },
    })
    await handle('with').append({ ...strings('x'), streamConfig })
    expect(await config('with')).toMatchObject(merged)
    await handle('with').append({ ...strings('x'), streamConfig: { storageClass: 'express' } })
    expect(await config('with')).toMatchObject(merged)
  })

  it('is created by an append session', async () => {
    const { handle, config } = await newBasin({ createStreamOnAppend: true })
    await using stream = handle('s')
    await using session = await stream.appendSession({ streamConfig })
    expect((await (await session.submit(strings('x'))).ack()).start.seqNum).toBe(0)
    expect(await config('s')).toMatchObject(merged)
  })

  it('is created by a read, which returns no records', async () => {
    const { handle, config } = await newBasin({ createStreamOnRead: true })
    const reading = handle('s').read({ start: { from: { seqNum: 0 } }, streamConfig })
    await expect(reading).rejects.toMatchObject({ status: 416, tail: { seqNum: 0 } })
    expect(await config('s')).toMatchObject(merged)
    expect((await handle('by-tail').checkTail()).tail.seqNum).toBe(0)
    expect(await config('by-tail')).toMatchObject({ storageClass: 'standard' })
  })

  it('is created by a read session, which follows it', async () => {
    const { handle, config } = await newBasin({ createStreamOnRead: true })
    await using stream = handle('s')
    const session = await stream.readSession({ streamConfig })
    await session.caughtUp()
    expect(await config('s')).toMatchObject(merged)
    await stream.append(strings('first'))
    expect(bodies(await take(session, 1))).toEqual(['first'])
    await session.cancel()
  })

  it('is not created if the basin does not allow it', async () => {
    const { handle } = await newBasin({})
    const missing = { status: 404, code: 'stream_not_found' }
    await using stream = handle('s')
    await expect(stream.append(strings('x'))).rejects.toMatchObject(missing)
    await expect(stream.readSession({ streamConfig }).then(all)).rejects.toMatchObject(missing)
    await expect(stream.checkTail()).rejects.toMatchObject(missing)
  })
})
