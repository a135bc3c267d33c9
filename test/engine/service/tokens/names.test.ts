import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Engine, Stream } from '../../../../src/index.ts'
import type { AccessScopeInput } from '../../../../src/model/access.ts'
import { type AccessEngine, EVERYTHING, openWithTokens, outcome } from './support.ts'

let engine: AccessEngine
let hw: Engine
beforeEach(async () => {
  engine = await openWithTokens()
  hw = engine.hw
})
afterEach(() => hw.close())

const USES: Record<string, (stream: Stream) => Promise<unknown>> = {
  append: (stream) => stream.append('x'),
  'append session': async (stream) => (await stream.appendSession()).close(),
  'read batch': (stream) => stream.readBatch({ seqNum: 0 }),
  'read session': async (stream) => (await stream.openCursor({}, {}))?.close(),
  'check tail': (stream) => stream.checkTail(),
}

describe.each(Object.entries(USES))('invalid names do not escape the scope: %s', (_, use) => {
  // The storage has basin and stream in one key, with U+0000 between them.
  it.each<[string, AccessScopeInput, autoPrefixStreams: boolean]>([
    ['a scope', { ...EVERYTHING, streams: { prefix: 'mine/' } }, false],
    ['a prefix', { ...EVERYTHING, streams: { prefix: 'mine/' } }, true],
    ['a scope of basins', { ...EVERYTHING, basins: { prefix: 'bas' }, streams: { prefix: 'mine/' } }, false],
  ])('a basin with a part of a name of a stream, against %s', async (_, scope, autoPrefixStreams) => {
    const foreign = hw.basin('basin').stream('yours/mine/a')
    await foreign.append('not yours')
    const view = await engine.issued({ scope, autoPrefixStreams })
    const stream = view.basin('basin\0yours/').stream(autoPrefixStreams ? 'a' : 'mine/a')
    expect(await outcome(use(stream))).toMatch(/^(invalid|permission_denied)$/)
    expect((await foreign.checkTail()).seqNum).toBe(1)
  })

  it('a missing name', async () => {
    const foreign = hw.basin('basin').stream('undefined')
    await foreign.append('not yours')
    const view = await engine.issued({ scope: { ...EVERYTHING, streams: { prefix: 'mine/' } } })
    const stream = async () => use(view.basin('basin').stream(undefined as never))
    expect(
      await stream().then(
        () => 'ok',
        () => 'refused',
      ),
    ).toBe('refused')
    expect((await foreign.checkTail()).seqNum).toBe(1)
  })
})
