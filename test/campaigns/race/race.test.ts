// @module-tag nightly

import { beforeAll, describe, expect, it } from 'vitest'
import type * as Race from '../../browser/pages/indexeddb-race.ts'
import { inChromium, type Remote, scriptIn } from '../../browser/support.ts'
import { campaignOf, seedsFrom } from '../harness/campaign.ts'

const race = campaignOf('race', { runs: 1 })
const { runs: RUNS } = race.options
const APPENDS = 1000

/**
 * `process-crash` races as much as `power-loss`, because the tabs wait for the database of the browser, not
 * for the disk.
 */
inChromium('two tabs that race on one IndexedDB', (browser) => {
  /** The sequence numbers won by each tab in all runs. */
  const wins = [0, 0]
  let tabs: readonly [Remote<typeof Race>, Remote<typeof Race>]
  beforeAll(async () => {
    const open = async () => {
      const page = await browser.context.newPage()
      await page.goto(browser.origin)
      const tab = await scriptIn<typeof Race>(page, 'indexeddb-race')
      await tab.openEngine('race', 'process-crash')
      return tab
    }
    tabs = [await open(), await open()]
  })

  describe(`with ${APPENDS} conditional appends each: every sequence number has exactly one winner`, () => {
    it.each(seedsFrom(1, RUNS))('run %i', async (run) => {
      const stream = `race ${run}`
      const names = ['a', 'b'] as const
      const won = await Promise.all(tabs.map((tab, i) => tab.race(stream, names[i]!, APPENDS)))
      const records = await tabs[run % 2]!.readAll(stream)
      const winnerOf = new Map(names.flatMap((name, i) => won[i]!.map((seqNum) => [seqNum, name] as const)))
      expect(won[0]!.length + won[1]!.length).toBe(APPENDS)
      expect(winnerOf.size).toBe(APPENDS)
      expect(records).toEqual(records.map((_, seqNum) => `${winnerOf.get(seqNum)} ${seqNum}`))
      expect(records.length).toBe(APPENDS)
      won.forEach((own, i) => {
        wins[i]! += own.length
      })
    })

    it('each tab wins many sequence numbers', () => {
      // A busy machine may hold one tab up for all of a single run.
      if (!race.runsAll) return
      for (const count of wins) expect(count).toBeGreaterThan(5 * RUNS)
    })
  })

  it.each(seedsFrom(1, RUNS))(
    'tabs that fence each other append only with the current token (run %i)',
    async (run) => {
      const stream = `fight ${run}`
      const made = await Promise.all(tabs.map((tab, i) => tab.fight(stream, `tab${i}`, 30, 10)))
      const records = await tabs[0].readAll(stream)
      let token = ''
      for (const record of records) {
        if (record.startsWith('fence ')) token = record.slice('fence '.length)
        else expect(record.startsWith(`${token} `)).toBe(true)
      }
      const appended = records.filter((record) => !record.startsWith('fence '))
      expect(appended.toSorted()).toEqual(made.flat().toSorted())
      expect(records.length - appended.length).toBe(60)
    },
  )
})
