import 'fake-indexeddb/auto'
import { expect, it, onTestFinished } from 'vitest'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { open } from '../../../src/index.ts'
import { outcomeOf, silent } from '../../support/index.ts'

it('no tab acknowledges an append that begins after the deletion of its basin in another one', async () => {
  // They learn of nothing by themselves.
  const tabs = await Promise.all(
    [1, 2].map(() => open({ storage: silent(indexedDb('basin-deletion'), 'none'), autoCreate: false })),
  )
  for (const tab of tabs) onTestFinished(() => tab.close())
  const [tab, other] = tabs as [(typeof tabs)[0], (typeof tabs)[0]]
  await tab.createBasin('basin')
  const names = Array.from({ length: 6 }, (_, i) => `stream-${i}`)
  for (const name of names) await tab.basin('basin').createStream(name)
  const streams = names.map((name) => other.basin('basin').stream(name))
  await Promise.all(streams.map((stream) => stream.append('before')))
  await tab.basin('basin').delete()
  const outcomes = await Promise.all(streams.map((stream) => outcomeOf(stream.append('after'))))
  expect(outcomes).not.toContain('ok')
})
