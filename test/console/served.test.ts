// @module-tag slow

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { describeInChromium } from '../browser/chromium.ts'
import { run } from '../cli/run.ts'
import { connect, ROOT_TOKEN, servedConsole } from './support.ts'

/** What outlives a page: its address, and what it stored. */
function kept(page: Page): Promise<{ url: string; tab: string; browser: string }> {
  return page.evaluate(() => ({
    url: location.href,
    tab: JSON.stringify(sessionStorage),
    browser: JSON.stringify(localStorage),
  }))
}

it('headwater serve shows the console, under a policy without exceptions and in less than 150 KB', async () => {
  const url = await run(['serve', '--port', '0', '--no-auth']).ready()
  const response = await fetch(url)
  const html = await response.text()
  const [, script = ''] = /<script type="module">(.*)<\/script>/s.exec(html) ?? []
  expect(script).toContain('Nothing is stored yet')
  expect(gzipSync(html).length).toBeLessThan(150_000)
  const hash = createHash('sha256').update(script).digest('base64')
  expect(response.headers.get('content-security-policy')).toBe(
    `default-src 'none'; script-src 'sha256-${hash}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  )
})

describeInChromium('the console of a server that requires a token', () => {
  const served = servedConsole({ auth: 'token' })

  it('shows first steps on an empty server, with commands that work unchanged', async () => {
    const page = await served.open('', { token: ROOT_TOKEN })
    await page.getByRole('heading', { name: 'Nothing is stored yet' }).waitFor()
    const commands = await page.locator('pre').allTextContents()
    expect(commands).toHaveLength(4)
    expect(await page.content()).not.toContain(ROOT_TOKEN)
    const script = commands.with(-1, `exec ${commands.at(-1)}`).join('\n')
    const shell = spawn('sh', ['-ec', script.replace('your access token', ROOT_TOKEN)])
    // The last command follows the stream for ever.
    onTestFinished(() => void shell.kill())
    let output = ''
    shell.stdout.on('data', (chunk) => {
      output += chunk
    })
    await expect.poll(() => output).toContain('"body":"hello"')
  })

  it('asks again after a token that the server rejects', async () => {
    const page = await served.open()
    await connect(page, 'another-token-than-that-of-the-server')
    await page.getByText('The server rejected the access token').waitFor()
    await connect(page, ROOT_TOKEN)
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
  })

  it.each([
    ['until this page is closed or reloaded', { tab: false, browser: false }],
    ['until this tab is closed', { tab: true, browser: false }],
    ['in this browser', { tab: false, browser: true }],
  ])('keeps the token %s, and never in the URL', async (label, places) => {
    const page = await served.open()
    await page.getByLabel(label).check()
    await connect(page, ROOT_TOKEN)
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
    const { url, tab, browser } = await kept(page)
    expect(url).not.toContain(ROOT_TOKEN)
    expect({ tab: tab.includes(ROOT_TOKEN), browser: browser.includes(ROOT_TOKEN) }).toEqual(places)
    await page.reload()
    const title = places.tab || places.browser ? 'Basins' : 'Access token'
    await page.getByRole('heading', { name: title }).waitFor()
    if (title === 'Access token') {
      await page.evaluate(() => localStorage.clear())
      return
    }
    await page.getByRole('button', { name: 'Forget token' }).click()
    await page.getByRole('heading', { name: 'Access token' }).waitFor()
    await expect.poll(async () => JSON.stringify(await kept(page))).not.toContain(ROOT_TOKEN)
    // Only the choice is remembered.
    await expect.poll(() => page.getByLabel(label).isChecked()).toBe(true)
    await page.evaluate(() => localStorage.clear())
  })

  it('signs in once by the link that the server prints, and puts the focus on the token otherwise', async () => {
    const page = await served.open()
    await expect
      .poll(() =>
        page.getByLabel('Access token', { exact: true }).evaluate((field) => field.matches(':focus')),
      )
      .toBe(true)
    await page.goto('about:blank')
    await page.route('**/sign-in', (route) =>
      route.request().headers().authorization === 'Bearer the-code'
        ? route.fulfill({ json: { access_token: ROOT_TOKEN } })
        : route.fulfill({ status: 401, json: { code: 'authn', message: 'used' } }),
    )
    await page.goto(`${served.url}/#code=used`)
    await page.getByText('The server rejected the access token or link').waitFor()
    await page.goto('about:blank')
    await page.goto(`${served.url}/#code=the-code`)
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
    expect(page.url()).not.toContain('code')
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.goBack()
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
    expect(page.url()).not.toContain('code')
    await page.reload()
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
  })

  it('issues a token whose permissions it states, shows it once, and revokes it', async () => {
    await served.hw.createBasin('shop-of-tenants')
    const page = await served.open('#/tokens', { token: ROOT_TOKEN })
    await page.getByRole('button', { name: 'Issue token' }).click()
    const dialog = page.getByRole('dialog')
    const permits = dialog.getByRole('status').getByRole('listitem')
    await dialog.getByLabel('Id', { exact: true }).fill('tenant-7/browser')
    await dialog.getByLabel('Expires').selectOption('After a time')
    await dialog.getByLabel('Permissions').selectOption('Append only')
    await dialog.getByLabel('Basins', { exact: true }).selectOption('With the name')
    await dialog.getByLabel('Name of basins').fill('shop-of-tenants')
    await dialog.getByLabel('Streams', { exact: true }).selectOption('With the prefix')
    await dialog.getByLabel('Prefix of streams', { exact: true }).fill('tenant-7/')
    await dialog.getByText('Single operations (1)').click()
    await dialog.getByLabel('append', { exact: true }).uncheck()
    await dialog.getByText('No operation is selected: the token would permit nothing.').waitFor()
    await expect
      .poll(() => dialog.getByRole('button', { name: 'Issue', exact: true }).isDisabled())
      .toBe(true)
    await dialog.getByLabel('stream read').check()
    await dialog.getByLabel('append', { exact: true }).check()
    await dialog.getByLabel('list-access-tokens').check()
    await dialog.getByText('Operations on access tokens are selected, but no access token is.').waitFor()
    await dialog.getByLabel('list-access-tokens').uncheck()
    await expect
      .poll(() => permits.allTextContents())
      .toEqual([
        'On every stream that begins with “tenant-7/” in the basin “shop-of-tenants”: ' +
          'read records, check the tail, see usage, append records.',
      ])
    await dialog.getByLabel('Hide the stream prefix').check()
    await dialog.getByRole('button', { name: 'Issue', exact: true }).click()
    const token = (await dialog.locator('pre').textContent())!
    await served.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await dialog.getByRole('button', { name: 'Copy token' }).click()
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(token)
    const tenant = served.hw.as(token).basin('shop-of-tenants')
    await served.hw.basin('shop-of-tenants').createStream('tenant-7/orders')
    expect((await tenant.stream('orders').append('created')).end.seqNum).toBe(1)
    expect((await tenant.createStream('other').catch((error) => error)).code).toBe('permission_denied')
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('cell', { name: 'tenant-7/browser' }).first().waitFor()
    expect(await page.content()).not.toContain(token)
    await page.getByRole('button', { name: 'Revoke tenant-7/browser' }).click()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('No token was issued').waitFor()
    expect(
      (
        await tenant
          .stream('orders')
          .checkTail()
          .catch((error) => error)
      ).code,
    ).toBe('authn')
  })

  it('opens a stream with a token that permits nothing else', async () => {
    await served.hw.createBasin('basin-of-one')
    await served.hw.basin('basin-of-one').createStream('only')
    await served.hw.basin('basin-of-one').stream('only').append('seen')
    const token = await served.hw.issueAccessToken({
      id: 'reader',
      scope: { basins: { exact: 'basin-of-one' }, streams: { exact: 'only' }, ops: ['read'] },
    })
    const page = await served.open('', { token })
    await page.getByText('permission_denied').waitFor()
    await page.getByRole('searchbox').fill('basin-of-one')
    await page.getByRole('searchbox').press('Enter')
    await page.getByRole('heading', { name: 'basin-of-one' }).waitFor()
    await page.getByRole('searchbox').fill('only')
    await page.getByRole('searchbox').press('Enter')
    await page.locator('.row', { hasText: 'seen' }).waitFor()
  })

  it('charts every metric set, and shows the stored bytes', async () => {
    const basin = served.hw.basin('basin-of-usage')
    await served.hw.createBasin('basin-of-usage')
    await basin.createStream('metered')
    await basin.stream('metered').append(['x'.repeat(992)])
    await basin.stream('metered').readBatch({ seqNum: 0 })
    const page = await served.open('#/basins/basin-of-usage/usage', { token: ROOT_TOKEN })
    const figure = (title: string) =>
      page.getByRole('figure').filter({ has: page.getByText(title, { exact: true }) })
    await page.locator('dl', { hasText: 'Stored' }).getByText('1000 B').waitFor()
    await figure('Stored').getByText('metered size 1000 B').waitFor()
    await figure('Appended').getByText('express 1000 B').waitFor()
    await figure('Append operations').getByText('express 1').waitFor()
    await figure('Read').getByText('read bytes 1000 B').waitFor()
    await figure('Read operations').getByText('unary 1').waitFor()
    await figure('Operations on the basin').getByText('create-stream 1').waitFor()
    await expect.poll(() => page.locator('.chart svg').count()).toBe(6)
    await figure('Appended').getByText('Table').click()
    await figure('Appended').getByRole('cell', { name: '1,000' }).waitFor()
    for (const range of ['Last 24 hours', 'Last 7 days', 'Last 30 days']) {
      await page.getByLabel('Range of time').selectOption(range)
      await figure('Appended').getByText('express 1000 B').waitFor()
    }
    await page.goto(`${served.url}/#/usage`)
    await figure('Active basins').getByText('basin-of-usage').waitFor()
    await figure('Operations on the account').getByText('create-basin').first().waitFor()
    await page.goto(`${served.url}/#/basins/basin-of-usage/streams/metered/usage`)
    await figure('Stored').getByText('metered size 1000 B').waitFor()
  })
})
