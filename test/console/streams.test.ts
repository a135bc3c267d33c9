// @module-tag slow

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import type { Stream } from '../../src/index.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { servedConsole } from './support.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')

describeInChromium('the console', () => {
  const served = servedConsole()
  let count = 0

  /** A stream with these records in a basin of its own, and its records tab. */
  async function openStream(...bodies: string[]): Promise<{ page: Page; stream: Stream; fragment: string }> {
    const name = `basin-of-test-${++count}`
    await served.hw.createBasin(name)
    const stream = served.hw.basin(name).stream('logs/a')
    await served.hw.basin(name).createStream('logs/a')
    if (bodies.length > 0) await stream.append(bodies)
    const fragment = `#/basins/${name}/streams/logs%2Fa`
    return { page: await served.open(fragment), stream, fragment }
  }

  const rows = (page: Page) => page.locator('.row').allTextContents()
  /** The bodies of the rows, without sequence numbers and times. */
  const bodies = async (page: Page) => (await rows(page)).map((text) => text.slice(text.indexOf('.') + 4))

  it('lists basins by prefix, more of them on request, and sorts those that are loaded', async () => {
    const names = Array.from({ length: 120 }, (_, index) => `many-${String(index).padStart(4, '0')}`)
    for (const name of ['first-of-all', ...names]) await served.hw.createBasin(name)
    const page = await served.open()
    const links = page.locator('tbody').getByRole('link')
    await page.getByRole('searchbox').fill('many-')
    await expect.poll(() => links.allTextContents()).toEqual(names.slice(0, 50))
    await page.getByText('50 basins loaded, and there are more').waitFor()
    await page.getByRole('button', { name: 'Load more' }).click()
    await expect.poll(() => links.allTextContents()).toEqual(names)
    await page.getByRole('button', { name: 'Load more' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Name' }).click()
    await page.getByRole('button', { name: 'Name' }).click()
    await expect.poll(() => links.allTextContents()).toEqual(names.toReversed())
    await page.getByRole('button', { name: 'Name' }).click()
    await page.getByRole('searchbox').fill('many-007')
    await expect.poll(() => links.allTextContents()).toEqual(names.slice(70, 80))
    await page.getByRole('searchbox').press('Enter')
    await page.getByRole('heading', { name: 'many-0070' }).waitFor()
    await page.goBack()
    await page.getByRole('searchbox').fill('not-listed')
    await page.getByText('No basin begins with “not-listed”.').waitFor()
    await page.getByRole('searchbox').press('Enter')
    await page.getByText('basin `not-listed` not found').waitFor()
  })

  it('follows a fragment that changes while the page loads', async () => {
    const page = await served.context.newPage()
    onTestFinished(() => page.close())
    await page.addInitScript(() => {
      addEventListener('DOMContentLoaded', () => {
        location.hash = '#/usage'
      })
    })
    await page.goto(`${served.url}/`)
    await page.getByRole('heading', { name: 'Usage' }).waitFor()
  })

  it('creates, configures and deletes a basin', async () => {
    const page = await served.open()
    await page.getByRole('button', { name: 'Create basin' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Invalid')
    await dialog.getByText('basin name should be at least 8 bytes').waitFor()
    await dialog.getByLabel('Name').fill('created-here')
    await dialog.getByLabel('By reads').check()
    await dialog.getByLabel('Encryption of new streams').selectOption('AES-256-GCM')
    await dialog.getByLabel('Retention').selectOption('Forever')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'created-here' }).waitFor()
    expect(await served.hw.basin('created-here').config()).toMatchObject({
      createStreamOnAppend: true,
      createStreamOnRead: true,
      streamCipher: 'aes-256-gcm',
      defaultStreamConfig: { retentionPolicy: 'infinite' },
    })
    await page.getByRole('link', { name: 'Configuration' }).click()
    await page.getByLabel('Retention', { exact: true }).selectOption('For a time')
    await page.getByLabel('Retention age', { exact: true }).fill('0')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Retention: "0" is not a positive whole number').waitFor()
    await page.getByLabel('Retention age', { exact: true }).fill('3')
    await page.getByLabel('Encryption of new streams').selectOption('None')
    await page.getByLabel('By appends').uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    expect(await served.hw.basin('created-here').config()).toMatchObject({
      createStreamOnAppend: false,
      streamCipher: null,
      defaultStreamConfig: { retentionPolicy: { ageSeconds: 3 * 86_400 } },
    })
    await page.getByRole('button', { name: 'Delete basin' }).click()
    const confirm = dialog.getByRole('button', { name: 'Delete basin' })
    await expect.poll(() => confirm.isDisabled()).toBe(true)
    await dialog.getByLabel('Type “created-here” to confirm').fill('created-here')
    await confirm.click()
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
    const isDeleted = async () =>
      (await served.hw.listBasins({ prefix: 'created-here' })).items.every(
        ({ state }) => state === 'deleting',
      )
    await expect.poll(isDeleted).toBe(true)
  })

  it('creates, configures and deletes a stream', async () => {
    await served.hw.createBasin('basin-of-streams')
    const page = await served.open('#/basins/basin-of-streams')
    const basin = served.hw.basin('basin-of-streams')
    await page.getByText('This basin has no streams').waitFor()
    await page.getByRole('button', { name: 'Create stream' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('täglich/1')
    await dialog.getByLabel('Storage class').selectOption('Standard')
    await dialog.getByLabel('Timestamps', { exact: true }).selectOption('From the client, required')
    await dialog.getByLabel('Delete when empty').selectOption('After a time')
    await dialog.getByLabel('Empty for', { exact: true }).fill('2')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'täglich/1' }).waitFor()
    expect(await basin.stream('täglich/1').storedConfig()).toMatchObject({
      storageClass: 'standard',
      timestamping: { mode: 'client-require' },
      deleteOnEmpty: { minAgeSeconds: 7200 },
    })
    await page.getByRole('link', { name: 'Configuration' }).click()
    await page.getByLabel('Timestamps', { exact: true }).selectOption('Basin default')
    await page.getByLabel('Future timestamps').selectOption('Allowed')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    expect(await basin.stream('täglich/1').storedConfig()).toMatchObject({
      storageClass: 'standard',
      timestamping: { mode: 'client-prefer', uncapped: true },
    })
    await page.getByRole('button', { name: 'Delete stream' }).click()
    await dialog.getByRole('button', { name: 'Delete stream' }).click()
    await page.getByText('This basin has no streams').waitFor()
    expect((await basin.listStreams()).items).toEqual([])
  })

  it('follows a stream, from an offset, a sequence number or a time', async () => {
    const { page, stream } = await openStream('zero', 'one', 'two')
    await expect.poll(() => bodies(page)).toEqual(['zero', 'one', 'two'])
    const { tail } = await stream.append('three')
    await expect.poll(() => bodies(page)).toEqual(['zero', 'one', 'two', 'three'])
    await page.getByLabel('Start from').selectOption('Sequence number')
    await page.getByLabel('Sequence number').fill('2')
    await page.getByRole('button', { name: 'Start' }).click()
    await expect.poll(() => bodies(page)).toEqual(['two', 'three'])
    await page.getByLabel('Sequence number').fill('9')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('No records from here on. New ones appear here.').waitFor()
    await page.getByLabel('Start from').selectOption('Time')
    const local = (ms: number) => {
      const date = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000)
      return date.toISOString().slice(0, 19)
    }
    await page.getByLabel('Time').fill(local(tail.timestamp - 60_000))
    await page.getByRole('button', { name: 'Start' }).click()
    await expect.poll(() => bodies(page)).toEqual(['zero', 'one', 'two', 'three'])
    await page.getByLabel('Start from').selectOption('Records before the tail')
    await page.getByLabel('Records before the tail', { exact: true }).last().fill('1')
    await page.getByRole('button', { name: 'Start' }).click()
    await expect.poll(() => bodies(page)).toEqual(['three'])
  })

  it('pauses without skipping records, and filters by text', async () => {
    const { page, stream } = await openStream('apple', 'pear')
    await expect.poll(() => bodies(page)).toEqual(['apple', 'pear'])
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('Paused').waitFor()
    await stream.append([{ body: 'plum', headers: [['kind', 'Apple-like']] }, 'cherry'])
    await expect.poll(() => bodies(page)).toEqual(['apple', 'pear'])
    await page.getByRole('button', { name: 'Resume' }).click()
    await expect.poll(() => bodies(page)).toEqual(['apple', 'pear', 'kind=Apple-likeplum', 'cherry'])
    await page.getByRole('searchbox', { name: 'Filter' }).fill('APPLE')
    await expect.poll(() => bodies(page)).toEqual(['apple', 'kind=Apple-likeplum'])
    await stream.append(['grape', 'pineapple'])
    await expect.poll(() => bodies(page)).toEqual(['apple', 'kind=Apple-likeplum', 'pineapple'])
    await page.getByText('3 match').waitFor()
  })

  it('shows bodies as text, JSON and hex, and marks commands', async () => {
    const { page, stream } = await openStream('{"a":[1]}')
    // A read that is opened after the trim does not return the first record.
    await expect.poll(() => bodies(page)).toEqual(['{"a":[1]}'])
    await stream.append([{ body: new Uint8Array([0, 255, 65]), headers: [['name', 'wert ü']] }])
    await stream.fence('writer-7')
    await stream.trim(1)
    await page.locator('.row', { hasText: 'sets the fencing token to "writer-7"' }).waitFor()
    await page.locator('.row', { hasText: 'removes the records before 1' }).waitFor()
    const detail = page.getByRole('complementary')
    const shown = () => detail.locator('pre').textContent()
    await page.locator('.row').first().click()
    await detail.getByRole('button', { name: 'a', exact: true }).click()
    await detail.getByText('.a', { exact: true }).waitFor()
    await page.getByLabel('Show bodies as').selectOption('Text')
    await expect.poll(() => shown()).toBe('{"a":[1]}')
    await page.getByLabel('Show bodies as').selectOption('Hex')
    await expect.poll(() => shown()).toContain('000000  7b 22 61')
    await page.locator('.row').nth(1).click()
    await expect.poll(() => shown()).toBe(`000000  00 ff 41${' '.repeat(39)}  ..A`)
    await page.getByLabel('Show bodies as').selectOption('Text')
    await detail.getByText('Not UTF-8, shown as hex').waitFor()
    await detail.getByRole('cell', { name: 'wert ü' }).waitFor()
    await page.locator('.row').nth(2).click()
    await detail.getByText('fence command').waitFor()
  })

  it('copies curl commands that work unchanged', async () => {
    const { page } = await openStream("it's", 'two')
    await served.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const copied = async () => {
      await page.getByText('Copied the curl command').waitFor()
      return page.evaluate(() => navigator.clipboard.readText())
    }
    const run = async () => (await promisify(execFile)('sh', ['-c', await copied()])).stdout
    await page.locator('.row').first().click()
    const detail = page.getByRole('complementary')
    await detail.getByText('Copy', { exact: true }).click()
    await detail.getByRole('button', { name: 'As curl' }).click()
    expect(JSON.parse(await run()).records).toMatchObject([{ seq_num: 0, body: "it's" }])
    await page.getByRole('link', { name: 'Append' }).click()
    await page.getByLabel('Body').fill("that's $HOME")
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    expect(JSON.parse(await run())).toMatchObject({ start: { seq_num: 2 }, end: { seq_num: 3 } })
  })

  it('appends one record, lines, and a JSON array, with conditions', async () => {
    const { page, stream, fragment } = await openStream()
    await page.goto(`${served.url}/${fragment}/append`)
    await page.getByLabel('Body').fill('first')
    await page.getByRole('button', { name: 'Add header' }).click()
    await page.getByLabel('Name of header 1').fill('lang')
    await page.getByLabel('Value of header 1').fill('en')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 1 record: 0 to 0').waitFor()
    await page.getByLabel('What to append').selectOption('Lines')
    await page.getByLabel('Lines', { exact: true }).fill('second\nthird\n')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 2 records: 1 to 2').waitFor()
    await page.getByLabel('What to append').selectOption('JSON array')
    await page.getByLabel('JSON array', { exact: true }).fill('{"not": "an array"}')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('must be a JSON array').waitFor()
    await page.getByLabel('JSON array', { exact: true }).fill('["fourth", {"n": 5}, {"body": "sixth"}]')
    await page.getByText('Conditions').click()
    await page.getByLabel('Sequence number').fill('7')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('the next sequence number is 3').waitFor()
    await page.getByLabel('Sequence number').fill('3')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 3 records: 3 to 5').waitFor()
    const { records } = await stream.readBatch({ seqNum: 0 })
    expect(records.map(({ body }) => body)).toEqual([
      'first',
      'second',
      'third',
      'fourth',
      '{"n":5}',
      'sixth',
    ])
    expect(records[0]!.headers).toEqual([['lang', 'en']])
  })

  it('fences and trims, and states the effect first', async () => {
    const { page, stream, fragment } = await openStream('a', 'b', 'c', 'd')
    await page.goto(`${served.url}/${fragment}/fence-and-trim`)
    await page.getByText('The stream will have no fencing token').waitFor()
    await page.getByLabel('New fencing token').fill('writer-1')
    await page.getByText('Appends that name another token than "writer-1" will be rejected').waitFor()
    await page.getByLabel('Only if the stream has a certain token now').check()
    await page.getByLabel('Current fencing token').fill('writer-0')
    await page.getByRole('button', { name: 'Set the token' }).click()
    await page.getByText('the stream has no fencing token').waitFor()
    await page.getByLabel('Current fencing token').fill('')
    await page.getByRole('button', { name: 'Set the token' }).click()
    await page.getByText('Set the fencing token in record 4').waitFor()
    expect((await stream.append('x', { fencingToken: 'other' }).catch((error) => error)).fencingToken).toBe(
      'writer-1',
    )
    await page.getByLabel('First record to keep').fill('1')
    await page.getByText('Removes 1 record: 0 to 0. 4 records and the trim command remain').waitFor()
    await page.getByLabel('First record to keep').fill('3')
    await page.getByText('Removes 3 records: 0 to 2.').waitFor()
    expect((await stream.readBatch({ seqNum: 0 })).records).toHaveLength(5)
    await page.getByRole('button', { name: 'Trim' }).click()
    await page.getByRole('dialog').getByText('This cannot be undone').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Trim' }).click()
    await page.getByText('The stream holds 3 up to its tail, 6').waitFor()
    expect((await stream.readBatch({ seqNum: 0 })).records[0]!.seqNum).toBe(3)
  })

  it('reads and appends with an encryption key, which stays in memory', async () => {
    await served.hw.createBasin('basin-of-secrets', { streamCipher: 'aes-256-gcm' })
    const basin = served.hw.basin('basin-of-secrets')
    await basin.createStream('private')
    await basin.stream('private', { encryptionKey: KEY }).append('a secret')
    const page = await served.open('#/basins/basin-of-secrets/streams/private')
    await page.getByText('Enter the encryption key above').waitFor()
    const key = page.getByLabel('Encryption key')
    await key.fill('too short')
    await key.press('Enter')
    await page.getByText('A key is 32 bytes in base64').waitFor()
    await key.fill(KEY)
    await key.press('Enter')
    await expect.poll(() => bodies(page)).toEqual(['a secret'])
    await key.fill('being typed')
    await basin.stream('private', { encryptionKey: KEY }).append('more')
    await expect.poll(() => bodies(page)).toEqual(['a secret', 'more'])
    expect(await key.inputValue()).toBe('being typed')
    await key.fill(KEY)
    await page.getByRole('link', { name: 'Append' }).click()
    await page.getByLabel('Body').fill('another')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 1 record').waitFor()
    const state = await page.evaluate(() => JSON.stringify([location.href, localStorage, sessionStorage]))
    expect(state).not.toContain(KEY)
    await page.reload()
    await page.getByRole('link', { name: 'Records' }).click()
    await page.getByText('Enter the encryption key above').waitFor()
  })

  it('keeps the latest records up to 32 MiB, and renders those in view', async () => {
    const { page, stream } = await openStream('before')
    await expect.poll(() => bodies(page)).toEqual(['before'])
    // Appended first, so that the page reads history as fast as it can.
    await page.getByRole('button', { name: 'Pause' }).click()
    const batch = Array.from({ length: 500 }, (_, index) => ({ body: `${index} ${'x'.repeat(1990)}` }))
    for (let index = 0; index < 40; index++) await stream.append(batch)
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('501 records loaded: 0 to 500').waitFor()
    await page.getByText('19,500 behind the tail').waitFor()
    await page.getByRole('button', { name: 'To the end' }).click()
    await page.getByText('100 records loaded: 19901 to 20000').waitFor()
    for (let index = 0; index < 40; index++) await stream.append(batch)
    await page.getByText(/^16,\d\d\d records loaded: \d+ to 40000$/).waitFor()
    expect(await page.locator('.row').count()).toBeLessThan(100)
    const last = page.locator('.row').last()
    await expect.poll(() => last.textContent()).toMatch(/^40000/)
    await page.getByRole('searchbox', { name: 'Filter' }).fill('499 x')
    await page.getByText(/^3\d match$/).waitFor()
    await page.getByRole('searchbox', { name: 'Filter' }).fill('')
    await page.getByText(/ match$/).waitFor({ state: 'detached' })
    await page.getByRole('listbox').press('Home')
    await page.getByRole('complementary').waitFor()
    // More than the window has room for.
    await stream.append(batch)
    await stream.append(['one more'])
    await page.getByText('behind the tail').waitFor()
    expect(await last.textContent()).not.toContain('one more')
    await page.getByRole('button', { name: 'To the end' }).click()
    await expect.poll(() => last.textContent()).toContain('one more')
  })
})
