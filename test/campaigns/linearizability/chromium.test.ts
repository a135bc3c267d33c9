// @module-tag nightly

import type * as Recorder from '../../browser/pages/linearizability.ts'
import type { StorageName } from '../../browser/pages/linearizability.ts'
import { inChromium, scriptIn } from '../../browser/support.ts'
import { campaign, workloadOf } from './campaign.ts'
import type { Outcome, RecordedOperation } from './operations.ts'
import { joined, type Workload } from './record-history.ts'
import { byTestClock, offsetOf } from './tab-clock.ts'

const OUTCOMES: readonly Outcome['kind'][] = ['appended', 'refused', 'read', 'tail']

interface Row {
  readonly storage: StorageName
  /** Tabs, each with an engine and its share of the clients. */
  readonly tabs: number
}

const ROWS: readonly Row[] = [
  { storage: 'memory', tabs: 1 },
  { storage: 'indexeddb', tabs: 2 },
]

inChromium('in Chromium', (browser) => {
  for (const { storage, tabs } of ROWS) {
    const times = tabs > 1 ? 'told' : 'counted'

    const open = async (name: string) => {
      const script = await scriptIn<typeof Recorder>(await browser.page(), 'linearizability')
      await script.openStorage(storage, name)
      const offset = tabs > 1 ? await offsetOf(() => script.now()) : undefined
      const joinable = (recorded: RecordedOperation[]) =>
        offset === undefined ? recorded : byTestClock(recorded, offset)
      return {
        record: async (workload: Workload) => joinable(await script.record(workload, times)),
        recordLast: async (streams: readonly string[]) => joinable(await script.recordLast(streams, times)),
        close: () => script.closeStorage(),
      }
    }

    campaign(`${storage} in ${tabs} tab${tabs > 1 ? 's' : ''} of Chromium`, OUTCOMES, async (seed) => {
      const workload = workloadOf(seed)
      const opened = []
      for (let tab = 0; tab < tabs; tab++) opened.push(await open(`seed ${seed}`))
      const shares = opened.map(({ record }, tab) => record(shareOf(workload, tab, tabs)))
      const recorded = await Promise.all(shares)
      const last = await opened[0]!.recordLast(workload.streams)
      for (const { close } of opened) await close()
      return joined(...recorded, last)
    })
  }
})

function shareOf(workload: Workload, tab: number, tabs: number): Workload {
  const clients = workload.clients.filter((_, i, { length }) => Math.floor((i * tabs) / length) === tab)
  return { ...workload, clients }
}
