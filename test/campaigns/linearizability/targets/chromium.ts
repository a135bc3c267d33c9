import type * as Recorder from '../../../browser/pages/linearizability.ts'
import { type Browser, scriptIn } from '../../../browser/support.ts'
import type { History } from '../operations.ts'
import { joined, type Workload } from '../record-history.ts'
import { byTestClock, offsetOf } from './tab-clock.ts'

const TABS = 2

/** Records a history of two tabs, each with an engine and half of the clients. */
export async function recordTabs(browser: Browser, workload: Workload): Promise<History> {
  const tabs = await Promise.all(
    Array.from({ length: TABS }, () => openTab(browser, `seed ${workload.seed}`)),
  )
  const recorded = await Promise.all(
    tabs.map((tab, index) => {
      const clients = workload.clients.filter((_, i) => i % TABS === index)
      return tab.record({ ...workload, clients })
    }),
  )
  const last = await tabs[0]!.recordLast(workload.streams)
  for (const tab of tabs) await tab.close()
  return joined(...recorded, last)
}

async function openTab(browser: Browser, name: string) {
  const script = await scriptIn<typeof Recorder>(await browser.page(), 'linearizability')
  await script.openStorage(name)
  const offset = await offsetOf(() => script.now())
  return {
    record: async (workload: Workload) => byTestClock(await script.record(workload), offset),
    recordLast: async (streams: readonly string[]) => byTestClock(await script.recordLast(streams), offset),
    close: () => script.closeStorage(),
  }
}
