import { describe, expect, it } from 'vitest'
import { codeOf, openEngine } from '../../support/index.ts'

const never = async function* () {
  yield 'first'
  await new Promise(() => {})
}

describe('appendAll', () => {
  it('ends when return() is called while its source is idle', async () => {
    const { hw, clock, stream } = await openEngine()
    const acks = stream.appendAll(never())
    await acks.next()
    const pending = acks.next().then(() => 'ended', codeOf)
    let returned = false
    void acks.return().then(() => {
      returned = true
    })
    await clock.settle()
    expect({
      returned,
      pending: await Promise.race([pending, clock.settle().then(() => 'waiting')]),
    }).toEqual({ returned: true, pending: 'ended' })
    await hw.close()
  })

  it('ends when the engine closes while its source is idle', async () => {
    const { hw, clock, stream } = await openEngine()
    const acks = stream.appendAll(never())
    await acks.next()
    const pending = acks.next().then(() => 'ended', codeOf)
    await clock.settle()
    await hw.close()
    expect(await Promise.race([pending, clock.settle().then(() => 'waiting')])).toBe('closed')
  })

  it('ends when an append fails while its source is idle', async () => {
    const { hw, clock, stream } = await openEngine()
    const source = async function* () {
      yield 'first'
      yield [] as string[]
      await new Promise(() => {})
    }
    const acks = stream.appendAll(source())
    await acks.next()
    const pending = acks.next().then(() => 'ended', codeOf)
    await clock.settle()
    expect(await Promise.race([pending, clock.settle().then(() => 'waiting')])).toBe('invalid')
    await hw.close()
  })
})
