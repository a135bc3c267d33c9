import { expect, it } from 'vitest'
import { assertComplete } from './campaign.ts'
import { checkHistory } from './check-history.ts'
import { recordTarget } from './record-history.ts'
import { openFailingMemory } from './targets/storages.ts'

/** A small share of the campaign, whose other targets run at night. */
it('a history of two engines on one memory that answers late and fails is linearizable', async () => {
  const workload = { seed: 1, streams: ['a'], clients: [0, 1, 2, 3], operationsPerClient: 10 }
  const history = await recordTarget(await openFailingMemory(1, 2), workload)
  assertComplete(history, workload)
  expect(checkHistory(history)).toBeUndefined()
})
