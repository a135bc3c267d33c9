// @module-tag slow

import { expect, it } from 'vitest'
import type * as FirstStart from './pages/first-start.ts'
import { inChromium, scriptIn, startService } from './support.ts'

inChromium('the first start of an app', (browser) => {
  it('has no failed request in the tools of the browser', async () => {
    const service = await startService()
    const page = await browser.page()
    const failed: string[] = []
    page.on('response', (response) => {
      const request = response.request()
      if (response.status() >= 400) failed.push(`${response.status()} ${request.method()} ${request.url()}`)
    })
    page.on('console', (message) => {
      if (message.type() === 'error') failed.push(message.text())
    })
    const { start } = await scriptIn<typeof FirstStart>(page, 'first-start')
    expect(await start(service.url)).toEqual({ exists: false, code: 'basin_not_found', value: 1, records: 0 })
    expect(failed).toEqual([])
    expect(service.exchanges.some(({ path }) => path.includes('missing'))).toBe(true)
  })
})
