import { describe, expect, it } from 'vitest'
import { linesOf } from '../../adapters/transfer/lines.ts'
import { EVERYTHING, type TransferFilter } from '../../adapters/transfer/name-filter.ts'
import { refuseOccupied } from '../../adapters/transfer/occupied-streams.ts'
import type { BasinConfigInput } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { chunks, exported, imported, KEY, type Place, place } from './support.ts'

async function exportOf(names: readonly string[], config: BasinConfigInput = {}): Promise<string> {
  const { hw, service } = await place()
  await hw.createBasin('basin-a', config)
  for (const name of names) {
    await hw.basin('basin-a').createStream(name)
    await hw.basin('basin-a').stream(name, { encryptionKey: KEY }).append('x')
  }
  return exported(service)
}

function look(text: string, { service }: Place, filter: TransferFilter = EVERYTHING): Promise<void> {
  return refuseOccupied(() => linesOf(chunks(utf8(text))), service, filter)
}

describe('looking for streams that have records already', () => {
  it('finds the first, and writes nothing', async () => {
    const { hw, service } = await place()
    await hw.createBasin('basin-a')
    for (const name of ['s', 'z']) await hw.basin('basin-a').createStream(name)
    const text = await exported(service)
    const target = await place()
    await look(text, target)
    expect(target.requests).toEqual(['GET /v1/basins'])
    await target.hw.createBasin('basin-a')
    await target.hw.basin('basin-a').createStream('s')
    await target.hw.basin('basin-a').createStream('z')
    await look(text, target)
    await target.hw.basin('basin-a').stream('z').append('x')
    await expect(look(text, target)).rejects.toThrow(
      'line 5: stream z of basin basin-a exists and has records',
    )
    await look(text, target, { ...EVERYTHING, streams: { exact: 's' } })
    expect(target.requests.every((request) => request.startsWith('GET'))).toBe(true)
  })

  it('makes none, where looking at a stream makes it', async () => {
    const config = { createStreamOnRead: true }
    const text = await exportOf(['s'], config)
    const target = await place()
    await target.hw.createBasin('basin-a', config)
    await look(text, target)
    expect((await target.hw.basin('basin-a').listStreams()).items).toEqual([])
  })

  it('does not keep the import from giving them their cipher', async () => {
    const source = await place()
    await source.hw.createBasin('basin-a', { createStreamOnRead: true, streamCipher: 'aes-256-gcm' })
    await source.hw.basin('basin-a').createStream('sealed')
    await source.hw.basin('basin-a').stream('sealed', { encryptionKey: KEY }).append('x')
    await source.hw.reconfigureBasin('basin-a', { streamCipher: null })
    const text = await exported(source.service)
    const target = await place()
    await target.hw.createBasin('basin-a', { createStreamOnRead: true })
    await look(text, target)
    await imported(target.service, text)
    const [stream] = (await target.hw.basin('basin-a').listStreams()).items
    expect(stream).toMatchObject({ name: 'sealed', cipher: 'aes-256-gcm' })
  })

  it('finds them when the first basin is being deleted', async () => {
    const source = await place()
    await source.hw.createBasin('basin-b')
    await source.hw.basin('basin-b').createStream('s')
    const text = await exported(source.service)
    const target = await place({
      around: (fetch) => async (request) => {
        const answer = await fetch(request)
        if (new URL(request.url).pathname !== '/v1/basins') return answer
        return new Response((await answer.text()).replace('"state":"active"', '"state":"deleting"'))
      },
    })
    for (const basin of ['basin-a', 'basin-b']) await target.hw.createBasin(basin)
    await target.hw.basin('basin-b').createStream('s')
    await target.hw.basin('basin-b').stream('s').append('mine')
    await expect(look(text, target)).rejects.toThrow('stream s of basin basin-b exists and has records')
  })
})
