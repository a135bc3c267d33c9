// @module-tag slow

import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeInChromium, suiteBrowser } from '../browser/chromium.ts'
import { type StaticServer, serveDirectory } from '../browser/static-servers.ts'
import { PROJECT } from './examples.ts'

const SITE = join(PROJECT, 'docs', 'site', 'dist')
/** The time for a build, which takes a minute of two processors, while other tests use them. */
const BUILD_MS_MAX = 600_000
/** What a host sends of the index of the search, compressed with gzip. */
const SEARCH_BYTES_MAX = 150 * 1024

describeInChromium('the site', () => {
  const browser = suiteBrowser()
  let server: StaticServer

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
  afterAll(() => server?.close())

  it('runs headwater in the landing page: a second frame follows, and closing loses nothing', async () => {
    const page = await browser.page(new URL('project/index.html', server.url).href)
    const list = page.locator('.demo .records').first()
    const records = list.locator('.body')
    const followed = page.frameLocator('iframe').locator('.records .body')
    await page.getByLabel('Record', { exact: true }).fill('hello')
    await page.getByRole('button', { name: 'Append' }).click()
    await expect.poll(() => records.allTextContents()).toEqual(['hello'])
    await expect.poll(() => followed.allTextContents()).toEqual(['hello'])
    await page.getByRole('button', { name: 'Close the engine' }).click()
    await expect.poll(() => list.innerText()).toBe('Closed')
    await page.getByRole('button', { name: 'Open it again' }).click()
    await expect.poll(() => records.allTextContents()).toEqual(['hello'])
  })

  it('shows the install command, the repository, and the demo beside the title', async () => {
    const page = await browser.page(new URL('project/index.html', server.url).href)
    await page.setViewportSize({ width: 1280, height: 800 })
    const { repository } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'))
    const hero = page.locator('.hero')
    expect(await hero.locator('.install').innerText()).toContain('npm install headwater')
    const link = hero.getByRole('link', { name: 'Repository' })
    expect(`git+${await link.getAttribute('href')}.git`).toBe(repository.url)
    const start = hero.getByRole('link', { name: 'Get started' })
    expect(await start.getAttribute('href')).toBe('/project/getting-started.html')
    const [title, demo] = [await hero.locator('h1').boundingBox(), await hero.locator('.demo').boundingBox()]
    expect(demo!.x).toBeGreaterThan(title!.x + title!.width - 1)
    expect(demo!.y).toBeLessThan(title!.y + title!.height)
  })

  it('loads a small index of the search when its button gets the focus', async () => {
    const chunks = join(SITE, 'assets', 'chunks')
    const name = (await readdir(chunks)).find((name) => name.startsWith('@localSearchIndexroot'))!
    expect(gzipSync(await readFile(join(chunks, name))).length).toBeLessThan(SEARCH_BYTES_MAX)
    const page = await browser.page(new URL('project/getting-started.html', server.url).href)
    const isLoaded = () => server.requests.some((path) => path.endsWith(name))
    expect(isLoaded()).toBe(false)
    await page.getByRole('button', { name: 'Search' }).focus()
    await expect.poll(isLoaded).toBe(true)
    await page.keyboard.press('/')
    await page.getByRole('searchbox').fill('fencing')
    await expect.poll(() => page.locator('#localsearch-list li').count()).toBeGreaterThan(0)
  })

  it('has a page for each subpath of the package and each operation of the protocol', async () => {
    const { exports } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'))
    const index = await readFile(join(SITE, 'api', 'index.html'), 'utf8')
    for (const subpath of Object.keys(exports).filter((subpath) => subpath !== './package.json')) {
      const name = `headwater${subpath.slice(1)}`
      expect(await readFile(join(SITE, 'api', `${name}.html`), 'utf8')).toContain(`>${name} <a`)
      // A row of the index with a sentence.
      expect(index).toMatch(new RegExp(`>${name}</a></td><td>[A-Z]`))
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
