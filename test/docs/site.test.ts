// @module-tag slow

import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveDirectory } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { PROJECT } from './examples.ts'

const SITE = join(PROJECT, 'docs', 'site', 'dist')
/** The time for a build, which takes a minute of two processors, while other tests use them. */
const BUILD_MS_MAX = 600_000

describeInChromium('the site', () => {
  const browser = restartableBrowser()
  let server: AppServer

  // The build fails if a link leads nowhere.
  beforeAll(async () => {
    await promisify(execFile)('node', ['scripts/docs.mjs', '--build'], {
      cwd: PROJECT,
      env: { ...process.env, DOCS_BASE: '/project/' },
      // Its messages name the links that lead nowhere.
      maxBuffer: 64 * 1024 * 1024,
    })
    const directory = await mkdtemp(join(tmpdir(), 'headwater-site-'))
    await cp(SITE, join(directory, 'project'), { recursive: true })
    server = await serveDirectory(directory)
  }, BUILD_MS_MAX)
  afterAll(() => server?.remove())

  it('runs headwater in the landing page: a second frame follows, and closing loses nothing', async () => {
    const page = await browser.page(new URL('project/index.html', server.url).href)
    const records = page.locator('.demo .records').first().locator('.body')
    const followed = page.frameLocator('iframe').locator('.records .body')
    await page.getByLabel('Record', { exact: true }).fill('hello')
    await page.getByRole('button', { name: 'Append' }).click()
    await expect.poll(() => records.allTextContents()).toEqual(['hello'])
    await expect.poll(() => followed.allTextContents()).toEqual(['hello'])
    await page.getByRole('button', { name: 'Close the engine' }).click()
    await expect.poll(() => records.count()).toBe(0)
    await page.getByRole('button', { name: 'Open it again' }).click()
    await expect.poll(() => records.allTextContents()).toEqual(['hello'])
  })

  it('has a page for each subpath of the package and each operation of the protocol', async () => {
    const { exports } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'))
    for (const subpath of Object.keys(exports).filter((subpath) => subpath !== './package.json')) {
      const name = `headwater${subpath.slice(1)}`
      expect(await readFile(join(SITE, 'api', `${name}.html`), 'utf8')).toContain(`>${name} <a`)
    }
    const { paths } = JSON.parse(await readFile(join(SITE, 'openapi.json'), 'utf8'))
    const page = await browser.page(new URL('project/openapi.html', server.url).href)
    const text = await page.locator('main').innerText()
    expect(Object.keys(paths).filter((path) => !text.includes(path))).toEqual([])
  })

  it('has an index and a full text for language models', async () => {
    const index = await readFile(join(SITE, 'llms.txt'), 'utf8')
    const pages = [...index.matchAll(/\]\(([\w-]+)\.html\)/g)].map(([, page]) => page)
    expect(pages).toContain('getting-started')
    const full = await readFile(join(SITE, 'llms-full.txt'), 'utf8')
    for (const page of pages) expect(full).toContain(`<!-- docs/${page}.md -->`)
  })
})
