import { expect, it } from 'vitest'
import type * as Engine from './pages/indexeddb-engine.ts'
import { inChromium, scriptIn } from './support.ts'

const REST = '**/rest-*.js'

inChromium('code that is loaded late', (browser) => {
  const openIn = async (name: string, path: string) => {
    const page = await browser.page()
    await page.route(path, (route) => route.abort('internetdisconnected'))
    const engine = await scriptIn<typeof Engine>(page, 'indexeddb-engine')
    await engine.openEngine(name)
    return { page, engine }
  }

  it('is had by the next call when there was no network for it', async () => {
    const { page, engine } = await openIn('late', REST)
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(engine.append(['lost'])).rejects.toThrow('part of headwater could not be loaded')
    }
    await page.unroute(REST)
    expect(await engine.append(['kept'])).toBe(0)
    expect(await engine.readAll()).toEqual(['kept'])
    await engine.closeEngine()
  })

  it('is not needed to read what is there, and an append that lacks it is told so and can be made again', async () => {
    const { engine: first } = await openIn('there', '**/nothing')
    await first.append(['a'])
    await first.closeEngine()
    const { page, engine } = await openIn('there', REST)
    expect(await engine.readAll()).toEqual(['a'])
    await expect(engine.append(['lost'])).rejects.toThrow('storage failed')
    await page.unroute(REST)
    expect(await engine.append(['b'])).toBe(1)
    expect(await engine.readAll()).toEqual(['a', 'b'])
    await engine.closeEngine()
  })
})
