// @module-tag slow

import { afterAll, beforeAll, expect, it } from 'vitest'
// @ts-expect-error: a plain script without types
import { claimable, EMPTY, isHeldBy, LEASE_MS, reduce } from '../../examples/work-queue/queue.mjs'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { look } from './look.ts'

const queueOf = (...events: readonly object[]) =>
  events.reduce((queue, value, i) => reduce(queue, { value, timestamp: 1_000 * i }), EMPTY)

it('a claimed job can be claimed again when its lease ends, and only then', () => {
  const queue = queueOf({ type: 'added', id: 'a', text: 'a' }, { type: 'claimed', id: 'a', worker: 'one' })
  expect(claimable(queue, 1_000 + LEASE_MS - 1)).toBeUndefined()
  expect(claimable(queue, 1_000 + LEASE_MS)).toMatchObject({ id: 'a' })
})

it('a worker whose job was taken over no longer holds it', () => {
  const queue = queueOf(
    { type: 'added', id: 'a', text: 'a' },
    { type: 'claimed', id: 'a', worker: 'one' },
    { type: 'claimed', id: 'a', worker: 'two' },
  )
  expect(isHeldBy(queue, 'a', 'one')).toBe(false)
  expect(isHeldBy(queue, 'a', 'two')).toBe(true)
})

it('the first result of a job counts', () => {
  const done = (result: string) => ({ type: 'done', id: 'a', worker: 'one', result })
  const queue = queueOf({ type: 'added', id: 'a', text: 'a' }, done('first'), done('second'))
  expect(queue.jobs).toMatchObject([{ result: 'first' }])
})

describeInChromium('the example work-queue', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    server = await serveExample('work-queue')
  })
  afterAll(() => server?.remove())

  /** The events that are stored, in order. */
  async function events(): Promise<{ type: string; id: string; worker?: string }[]> {
    const url = `${server.url}v1/streams/events/records?seq_num=0`
    const response = await fetch(url, { headers: { 'svc-basin': 'work-queue' } })
    const { records } = (await response.json()) as { records: { body: string }[] }
    return records.map(({ body }) => JSON.parse(body))
  }

  it('does every job once, although a worker is killed while it works', async () => {
    const page = await browser.page(server.url)
    await page.getByRole('button', { name: 'Add 12 jobs' }).click()
    const second = page.locator('#workers li').nth(1)
    await expect.poll(() => second.textContent()).toContain('works on')
    await page.getByRole('button', { name: 'Kill worker-2' }).click()
    await page.getByRole('button', { name: 'Start worker-2' }).waitFor()
    await expect.poll(() => page.getByRole('status').textContent()).toContain('12 of 12 jobs done, each once')
    await look(page, 'work-queue')

    const done = (await events()).filter(({ type }) => type === 'done')
    expect(done).toHaveLength(12)
    expect(new Set(done.map(({ id }) => id)).size).toBe(12)
    expect(new Set(done.map(({ worker }) => worker))).toContain('worker-1')
  })

  it('gives jobs to a worker that is started again', async () => {
    const page = await browser.page(server.url)
    await page.getByRole('button', { name: 'Start worker-2' }).click()
    await page.getByRole('button', { name: 'Kill worker-2' }).waitFor()
    await page.getByRole('button', { name: 'Add 12 jobs' }).click()
    await expect.poll(() => page.getByRole('status').textContent()).toContain('24 of 24 jobs done')
    const last = (await events()).slice(-36)
    expect(new Set(last.map(({ worker }) => worker))).toContain('worker-2')
  })
})
