// @module-tag nightly

import { afterAll, beforeAll, describe } from 'vitest'
import { inChromium } from '../../browser/support.ts'
import { HAS_POSTGRES, withoutPostgres } from '../../storage/postgres/cluster.ts'
import { campaign } from './campaign.ts'
import { recordTarget, type Target } from './record-history.ts'
import { recordTabs } from './targets/chromium.ts'
import { openCutHttp } from './targets/http.ts'
import { KilledProcesses } from './targets/postgres.ts'
import { openDirectory, openFailingMemory } from './targets/storages.ts'

function targetCampaign(name: string, openTarget: (seed: number) => Promise<Target>): void {
  campaign(name, async (workload) => recordTarget(await openTarget(workload.seed), workload))
}

targetCampaign('filesystem', openDirectory)
targetCampaign('memory that answers late and fails', (seed) => openFailingMemory(seed, 1))
targetCampaign('two engines on one memory that answers late and fails', (seed) => openFailingMemory(seed, 2))
targetCampaign('HTTP whose connections are cut', openCutHttp)

describe.runIf(HAS_POSTGRES)(`on PostgreSQL${withoutPostgres}`, () => {
  let processes: KilledProcesses
  beforeAll(async () => {
    processes = await KilledProcesses.start()
  })
  afterAll(() => processes.stop())

  targetCampaign('three processes that are killed, as is the database', async (seed) => processes.open(seed))
})

inChromium('in Chromium', (browser) => {
  campaign('two tabs on one IndexedDB', (workload) => recordTabs(browser, workload))
})
