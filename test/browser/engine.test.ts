import { expect, it } from 'vitest'
import type * as Engine from './pages/engine.ts'
import { inChromium, type Remote, scriptIn, scriptInWorker } from './support.ts'

type Scenarios = Remote<typeof Engine>

inChromium('the engine in a browser', (browser) => {
  const places: readonly [name: string, globals: string[], load: () => Promise<Scenarios>][] = [
    ['a page', ['window'], async () => scriptIn(await browser.page(), 'engine')],
    ['a page, as built', ['window'], async () => scriptIn(await browser.page(), 'engine', 'package')],
    ['a worker', ['WorkerGlobalScope'], async () => scriptInWorker(await browser.page(), 'engine')],
  ]

  it.each(places)('in %s: has no globals of Node', async (_, globals, load) => {
    const { surroundings } = await load()
    expect(await surroundings()).toEqual(globals)
  })

  it.each(places)('in %s: checks the conditions of appends', async (_, __, load) => {
    const { appendUnderConditions } = await load()
    expect(await appendUnderConditions()).toEqual({
      ends: [2, 4],
      refusals: [
        expect.objectContaining({ code: 'seq_num_mismatch', seqNum: 2 }),
        expect.objectContaining({ code: 'fencing_token_mismatch', fencingToken: 'worker-7' }),
        expect.objectContaining({ code: 'invalid' }),
      ],
    })
  })

  it.each(places)('in %s: preserves every byte', async (_, __, load) => {
    const { everyByte } = await load()
    const { body, name, value, text } = await everyByte()
    const bytes = Array.from({ length: 256 }, (_, byte) => byte)
    expect([...body]).toEqual(bytes)
    expect([...name]).toEqual(bytes)
    expect([...value]).toEqual(bytes.toReversed())
    expect(text).toBe(new TextDecoder().decode(Uint8Array.from(bytes)))
  })

  it.each(places)('in %s: follows live records with RxJS and for await', async (_, __, load) => {
    const { follow } = await load()
    expect(await follow()).toEqual({
      observed: ['0 a', '1 b', '2 c', '3 d', '4 e'],
      iterated: [1, 2, 3, 4],
      open: 0,
    })
  })

  it.each(places)('in %s: trims', async (_, __, load) => {
    const { trim } = await load()
    expect(await trim()).toEqual({
      seqNums: [2, 3],
      beyond: expect.objectContaining({ code: 'range_not_satisfiable', tail: 4 }),
    })
  })

  it.each(places)('in %s: ends open calls when it closes', async (_, __, load) => {
    const { close } = await load()
    expect(await close()).toEqual({
      codes: ['closed', 'closed', 'closed'],
      left: { openReads: 0, waitingReads: 0, pendingAppends: 0 },
    })
  })
})
