// @module-tag slow

import { expect, it } from 'vitest'
import { launchPrivate } from '../chromium.ts'
import type * as Engine from '../pages/indexeddb-engine.ts'
import { inChromium, scriptIn } from '../support.ts'

inChromium(
  'IndexedDB in a private window',
  (browser) => {
    const open = async (name: string) => {
      const page = await browser.page()
      const engine = await scriptIn<typeof Engine>(page, 'indexeddb-engine')
      await engine.openEngine(name)
      return { page, engine }
    }
    const large = 'x'.repeat(1_000_000)

    it('keeps data while the window is open, and shares it between its tabs', async () => {
      const { page, engine } = await open('private')
      await engine.append(['a', 'b'])
      await engine.append([large])
      const { engine: other } = await open('private')
      expect(await other.append(['c'])).toBe(3)
      await page.reload()
      const reopened = await scriptIn<typeof Engine>(page, 'indexeddb-engine')
      await reopened.openEngine('private')
      expect(await reopened.readAll()).toEqual(['a', 'b', large, 'c'])
      for (const each of [reopened, other]) await each.closeEngine()
    })
  },
  { launch: launchPrivate },
)
