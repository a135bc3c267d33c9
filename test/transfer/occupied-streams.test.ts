import { describe, expect, it } from 'vitest'
import { assertUnoccupied } from '../../adapters/transfer/import-lines.ts'
import { linesOf } from '../../adapters/transfer/lines.ts'
import { EVERYTHING, type TransferFilter } from '../../adapters/transfer/name-filter.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { BasinConfigInput } from '../../src/model/config.ts'
import { chunks, type Endpoint, exported, KEY, openEndpoint } from './support.ts'

async function exportOf(names: readonly string[], config: BasinConfigInput = {}): Promise<string> {
  const { hw, service } = await openEndpoint()
  await hw.createBasin('basin-a', config)
  for (const name of names) {
    await hw.basin('basin-a').createStream(name)
    await hw.basin('basin-a').stream(name, { encryptionKey: KEY }).append('x')
  }
  return exported(service)
}

function look(text: string, { service }: Endpoint, filter: TransferFilter = EVERYTHING): Promise<void> {
  return assertUnoccupied(() => linesOf(chunks(utf8(text))), service, filter)
}

describe('the check for streams that already have records', () => {
  it('reports the first one and writes nothing', async () => {
    const { hw, service } = await openEndpoint()
    await hw.createBasin('basin-a')
    for (const name of ['s', 'z']) await hw.basin('basin-a').createStream(name)
    const text = await exported(service)
    const target = await openEndpoint()
    await look(text, target)
    expect(target.requests).toEqual(['GET /v1/basins'])
    await target.hw.createBasin('basin-a')
    await target.basin.createStream('s')
    await target.basin.createStream('z')
    await look(text, target)
    await target.stream('z').append('x')
    await expect(look(text, target)).rejects.toThrow('line 5: stream z of basin basin-a already has records')
    await look(text, target, { ...EVERYTHING, streams: { exact: 's' } })
    expect(target.requests.every((request) => request.startsWith('GET'))).toBe(true)
  })

  it('creates no stream in a basin that creates streams on read', async () => {
    const config = { createStreamOnRead: true }
    const text = await exportOf(['s'], config)
    const target = await openEndpoint()
    await target.hw.createBasin('basin-a', config)
    await look(text, target)
    expect((await target.basin.listStreams()).items).toEqual([])
  })

  it('finds streams while the first basin is being deleted', async () => {
    const source = await openEndpoint()
    await source.hw.createBasin('basin-b')
    await source.hw.basin('basin-b').createStream('s')
    const text = await exported(source.service)
    const target = await openEndpoint({
      wrapFetch: (fetch) => async (request) => {
        const answer = await fetch(request)
        if (new URL(request.url).pathname !== '/v1/basins') return answer
        const { headers } = answer
        const text = (await answer.text()).replace('"state":"active"', '"state":"deleting"')
        return new Response(text, { headers: { 'content-type': headers.get('content-type')! } })
      },
    })
    for (const basin of ['basin-a', 'basin-b']) await target.hw.createBasin(basin)
    await target.hw.basin('basin-b').createStream('s')
    await target.hw.basin('basin-b').stream('s').append('mine')
    await expect(look(text, target)).rejects.toThrow('stream s of basin basin-b already has records')
  })
})
