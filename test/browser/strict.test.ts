import { expect, it } from 'vitest'
import type * as Strict from './pages/strict.ts'
import { inChromium, scriptIn } from './support.ts'

inChromium('a page that permits no WebAssembly', (browser) => {
  it('is told so by aegis256(), and nothing is thrown unseen', async () => {
    const { withoutWasm } = await scriptIn<typeof Strict>(await browser.page('/'), 'strict')
    expect(await withoutWasm()).toMatch(/^unavailable: .*WebAssembly/)
  })
})
