// @module-tag slow

import type { Page, Route } from 'playwright-core'
import { expect, it } from 'vitest'
import type { Stream } from '../../src/index.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { deferred } from '../support/deferred.ts'
import { accessibility, ROOT_TOKEN, servedConsole } from './support.ts'

/** Text that runs a script, or leaves its place, wherever a page takes it for markup. */
const HOSTILE = `"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\u202e`

describeInChromium('a server that fails', () => {
  const served = servedConsole()
  const withToken = servedConsole({ auth: 'token' })
  let count = 0

  async function createStream(hw = served.hw): Promise<{ stream: Stream; fragment: string }> {
    const basin = `basin-of-failure-${++count}`
    await hw.createBasin(basin)
    await hw.basin(basin).createStream('logs')
    return { stream: hw.basin(basin).stream('logs'), fragment: `#/basins/${basin}/streams/logs` }
  }

  /** Answers requests for records until the returned function is called. */
  async function intercept(
    page: Page,
    answer: (route: Route) => Promise<void>,
  ): Promise<() => Promise<void>> {
    await page.route('**/v1/streams/logs/records?*', answer)
    return () => page.unroute('**/v1/streams/logs/records?*')
  }

  const bodies = (page: Page) => page.locator('.row .body').allTextContents()

  it('is asked again after 429, 500 and lost connections, and no record is missed', async () => {
    const { stream, fragment } = await createStream()
    await stream.append('first')
    const page = await served.open()
    const seen = deferred()
    const failures = [
      (route: Route) => route.fulfill({ status: 429, json: { code: 'rate_limited', message: 'too fast' } }),
      async (route: Route) => {
        // Until this answer, the page shows the failure before it, however slow the machine is.
        await seen.promise
        await route.fulfill({ status: 500, body: 'not JSON' })
      },
      (route: Route) => route.abort('connectionreset'),
    ]
    await intercept(page, (route) => failures.shift()?.(route) ?? route.continue())
    await page.goto(`${served.url}/${fragment}`)
    await page.getByText(/^Connection lost: too fast\. (Next attempt in \d+ s\.|Trying again …)/).waitFor()
    seen.resolve()
    await expect.poll(() => bodies(page)).toEqual(['first'])
    await page.getByText('Live').waitFor()
    await stream.append('second')
    await expect.poll(() => bodies(page)).toEqual(['first', 'second'])
  })

  it('is said to be lost in every view, with the next attempt, and what failed is loaded again', async () => {
    const { stream } = await createStream()
    await stream.append('first')
    const page = await served.open('#/tokens')
    await page.getByRole('heading', { name: 'Access tokens' }).waitFor()
    await page.route('**/v1/**', (route) => route.abort('connectionrefused'))
    await page.getByRole('link', { name: 'Basins' }).click()
    await page.getByText(/^Connection lost: .*(Next attempt in \d+ s\.|Trying again …)/).waitFor()
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.getByText('Connection lost').waitFor()
    await page.getByRole('link', { name: 'Basins' }).click()
    await page.unroute('**/v1/**')
    await page.getByText('Connection lost').waitFor({ state: 'detached' })
    await page.locator('tbody').getByRole('link').first().waitFor()
  })

  it('ends the tail with an error that would recur', async () => {
    const { stream, fragment } = await createStream()
    await stream.append('first')
    const page = await served.open(fragment)
    await expect.poll(() => bodies(page)).toEqual(['first'])
    await page.getByRole('button', { name: 'Pause' }).click()
    const json = { code: 'permission_denied', message: `not ${HOSTILE}` }
    await intercept(page, (route) => route.fulfill({ status: 403, json }))
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('alert').getByText(HOSTILE).waitFor()
    await page.getByText('Stopped').waitFor()
    // What was read stays.
    await expect.poll(() => bodies(page)).toEqual(['first'])
  })

  it('reports a deleted stream, and then follows a new one of the same name from its beginning', async () => {
    const { stream, fragment } = await createStream()
    await stream.append(['first', 'second'])
    const page = await served.open(fragment)
    await expect.poll(() => bodies(page)).toEqual(['first', 'second'])
    const [, , name] = fragment.split('/') as [string, string, string]
    await served.hw.basin(name).stream('logs').delete()
    await page.getByRole('alert').getByText('the stream was deleted').waitFor()
    await page.getByText('Stopped').waitFor()
    await expect.poll(() => bodies(page)).toEqual(['first', 'second'])
    await served.hw.basin(name).createStream('logs')
    await stream.append('new')
    await page.getByRole('button', { name: 'Start' }).click()
    await expect.poll(() => bodies(page)).toEqual(['new'])
    await page.getByText('Live').waitFor()
  })

  it('causes another token prompt when it rejects the current token', async () => {
    const { stream, fragment } = await createStream(withToken.hw)
    await stream.append('first')
    const { context, url } = withToken
    const page = await withToken.open(fragment, { token: ROOT_TOKEN })
    await expect.poll(() => bodies(page)).toEqual(['first'])
    await page.getByRole('button', { name: 'Pause' }).click()
    await withToken.hw.setRootToken('another-root-token-of-the-console-test')
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('The server rejected the access token').waitFor()
    expect(await page.content()).not.toContain(ROOT_TOKEN)
    await withToken.hw.setRootToken(ROOT_TOKEN)
    await page.getByLabel('Access token', { exact: true }).fill(ROOT_TOKEN)
    await page.getByRole('button', { name: 'Connect' }).click()
    await expect.poll(() => bodies(page)).toEqual(['first'])
    expect(page.url()).toBe(`${url}/${fragment}`)
    expect(context.pages()).not.toEqual([])
  })

  it('is named if it does not speak the wire protocol', async () => {
    const page = await served.open()
    await page.route('**/v1/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }),
    )
    await page.goto('about:blank')
    await page.goto(`${served.url}/#/basins/basin-elsewhere/streams/logs`)
    await page.getByText('unexpected response from the server: it is not a read session').waitFor()
    await page.goto(`${served.url}/#/basins`)
    await page.getByText('unexpected response from the server: its body is not JSON').waitFor()
    expect((await accessibility(page)).violations).toEqual([])
  })

  it('cannot inject markup into the page', async () => {
    const basin = 'basin-with-markup'
    await served.hw.createBasin(basin)
    await served.hw.basin(basin).createStream(HOSTILE)
    const stream = served.hw.basin(basin).stream(HOSTILE)
    await stream.append([{ body: HOSTILE, headers: [[HOSTILE, HOSTILE]] }])
    await stream.fence('<svg onload=alert(3)>')
    await served.hw.issueAccessToken({
      id: HOSTILE.slice(0, 40),
      scope: { basins: { prefix: '' }, streams: { prefix: HOSTILE }, ops: ['read'] },
    })
    const page = await served.open(`#/basins/${basin}`)
    let dialogs = 0
    page.on('dialog', (dialog) => {
      dialogs++
      dialog.dismiss()
    })
    await page.getByRole('link', { name: HOSTILE }).click()
    await page.getByRole('heading', { name: HOSTILE }).waitFor()
    await expect.poll(() => page.title()).toBe(`${HOSTILE} · ${basin} – headwater`)
    await page.locator('.row').first().click()
    await page.getByRole('cell', { name: HOSTILE }).first().waitFor()
    await page.locator('.row', { hasText: '<svg onload=alert(3)>' }).click()
    await page.goto(`${served.url}/#/tokens`)
    await page.getByRole('button', { name: /^Revoke/ }).click()
    await page.getByRole('dialog').getByText(HOSTILE.slice(0, 40)).waitFor()
    expect(await page.locator('img, script:not([type=module])').count()).toBe(0)
    expect(dialogs).toBe(0)
  })
})
