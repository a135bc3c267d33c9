import { open } from '../../../src/index.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { inProcess } from '../../support/access-table/perform.ts'
import { describeAccessTable } from '../../support/access-table/run-table.ts'
import { testClock, testStorage } from '../../support/index.ts'

describeAccessTable('the access table, in process', async () => {
  const clock = testClock()
  const owner = await open({ storage: testStorage(), usage: usageMetrics(), clock })
  return {
    owner,
    as: (token) => inProcess(owner.as(token)),
    advance: (ms) => clock.advance(ms),
    settle: () => clock.settle(),
    close: () => owner.close(),
  }
})
