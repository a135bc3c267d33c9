// @module-tag slow

import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { describeInChromium } from '../browser/chromium.ts'
import { run } from '../cli/run.ts'
import { ROOT_TOKEN, servedConsole, violationsIn } from './support.ts'

/** Text that runs a script, or leaves its place, wherever a page takes it for markup. */
const HOSTILE = `"'><img src=x onerror=alert(1)><script>alert(2)</script>\u202e`

it('headwater serve shows the console, with one script of its server, in less than 150 KB', async () => {
  const url = await run(['serve', '--port', '0', '--no-auth']).ready()
  const response = await fetch(url)
  const html = await response.text()
  expect([...html.matchAll(/<script[^>]*>/g)].map(String)).toEqual([
    '<script type="module" src="./console.js">',
  ])
  expect(response.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  const script = await fetch(new URL('console.js', url))
  expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  const text = await script.text()
  expect(text).toContain('Nothing is stored yet')
  expect(gzipSync(html + text).length).toBeLessThan(150_000)
  const again = await fetch(script.url, { headers: { 'if-none-match': script.headers.get('etag')! } })
  expect(again.status).toBe(304)
})

describeInChromium('the console of a server that requires a token', () => {
  const served = servedConsole()

  it('creates a basin and a stream, appends, follows, filters, trims and deletes', async () => {
    const page = await served.open()
    await page.getByLabel('Access token', { exact: true }).fill('another-token-than-that-of-the-server')
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByText('The server rejected the access token').waitFor()
    await page.getByLabel('Access token', { exact: true }).fill(ROOT_TOKEN)
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('heading', { name: 'Nothing is stored yet' }).waitFor()

    await page.getByRole('button', { name: 'Create basin' }).first().click()
    await page.getByRole('dialog').getByLabel('Name').fill('created-here')
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'created-here' }).waitFor()
    await page.getByRole('button', { name: 'Create stream' }).first().click()
    await page.getByRole('dialog').getByLabel('Name').fill('logs/a')
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'logs/a' }).waitFor()

    await page.getByRole('link', { name: 'Append' }).click()
    await page.getByLabel('Body').fill('{"id":1}')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 1 record: 0 to 0').waitFor()
    await page.getByRole('link', { name: 'Records' }).click()
    await page.getByText('{"id":1}').first().waitFor()
    const stream = served.hw.basin('created-here').stream('logs/a')
    await stream.append('appended elsewhere')
    await page.getByText('appended elsewhere').waitFor()
    await page.getByRole('searchbox', { name: 'Filter' }).fill('.id=1')
    await page.getByText('appended elsewhere').waitFor({ state: 'detached' })
    expect(await violationsIn(page)).toEqual([])

    await page.getByRole('link', { name: 'Fence and trim' }).click()
    await page.getByLabel('First record to keep').fill('1')
    await page.getByText('Removes 1 record: 0 to 0.').waitFor()
    await page.getByRole('button', { name: 'Trim' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Trim' }).click()
    await expect.poll(async () => (await stream.readBatch({ seqNum: 0 })).records[0]?.seqNum).toBe(1)

    await page.getByRole('link', { name: 'Configuration' }).click()
    await page.getByLabel('Retention', { exact: true }).fill('forever')
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(async () => (await stream.config()).retentionPolicy).toBe('infinite')
    await page.getByRole('button', { name: 'Delete stream' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete stream' }).click()
    await page.getByText('This basin has no streams').waitFor()
    const kept = await page.evaluate(() => JSON.stringify([location.href, localStorage, sessionStorage]))
    expect(kept).not.toContain(ROOT_TOKEN)
  })

  it('shows names and records as text, never as markup', async () => {
    await served.hw.createBasin('basin-with-markup')
    await served.hw.basin('basin-with-markup').createStream(HOSTILE)
    const stream = served.hw.basin('basin-with-markup').stream(HOSTILE)
    await stream.append([{ body: HOSTILE, headers: [[HOSTILE, HOSTILE]] }])
    const page = await served.open('#/basins/basin-with-markup', { token: ROOT_TOKEN })
    let dialogs = 0
    page.on('dialog', (dialog) => {
      dialogs++
      void dialog.dismiss()
    })
    await page.getByRole('link', { name: HOSTILE }).click()
    await page.getByRole('heading', { name: HOSTILE }).waitFor()
    await page.getByText(HOSTILE).last().waitFor()
    expect(await page.locator('img, body script').count()).toBe(0)
    expect(dialogs).toBe(0)
  })

  it('says that the connection is lost, and continues without missing a record', async () => {
    await served.hw.createBasin('basin-of-failures')
    await served.hw.basin('basin-of-failures').createStream('logs')
    const stream = served.hw.basin('basin-of-failures').stream('logs')
    await stream.append('first')
    const page = await served.open('', { token: ROOT_TOKEN })
    await page.getByRole('link', { name: 'basin-of-failures' }).waitFor()
    await page.route('**/v1/**', (route) => route.abort('connectionrefused'))
    await page.getByRole('link', { name: 'basin-of-failures' }).click()
    await page.getByText('Connection lost').waitFor()
    await stream.append('meanwhile')
    await page.unroute('**/v1/**')
    await page.getByRole('link', { name: 'logs' }).click()
    for (const body of ['first', 'meanwhile']) await page.getByText(body, { exact: true }).waitFor()
    await page.getByText('Connection lost').waitFor({ state: 'detached' })
  })
})
