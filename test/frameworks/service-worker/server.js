// Opens a page in Chromium and lets it send the requests that arrive at PORT, so that its service worker
// answers them.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { chromium } from 'playwright-core'

const CHROMIUMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const { PORT, CHROMIUM_PATH = CHROMIUMS.find(existsSync) } = process.env
/** What a page cannot set, or what belongs to the connection. */
const OWN_HEADERS = /^(host|connection|content-length|transfer-encoding|accept-encoding|user-agent|origin)$/

const files = createServer(async ({ url }, response) => {
  if (url === '/') return response.setHeader('content-type', 'text/html').end('<!doctype html>')
  if (url !== '/service-worker.js') return response.writeHead(404).end()
  response.setHeader('content-type', 'text/javascript').end(await readFile('bundle.js'))
})
await new Promise((resolve) => files.listen(0, '127.0.0.1', resolve))

const context = await chromium.launchPersistentContext('profile', {
  executablePath: CHROMIUM_PATH,
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run'],
})
context.on('serviceworker', (worker) => worker.on('console', print))
async function print(message) {
  // As the console of a browser shows it: an error with its cause.
  const shown = (value) => (value?.cause ? `${value.stack}\n[cause]: ${value.cause.stack}` : String(value))
  const texts = await Promise.all(message.args().map((arg) => arg.evaluate(shown)))
  process[message.type() === 'error' ? 'stderr' : 'stdout'].write(`${texts.join(' ')}\n`)
}

const page = context.pages()[0] ?? (await context.newPage())
const responses = new Map()
await page.exposeFunction('send', (id, { status, headers, chunk, end, error }) => {
  const response = responses.get(id)
  if (status !== undefined) response?.writeHead(status, headers.flat())
  if (chunk !== undefined) response?.write(Buffer.from(chunk, 'base64'))
  if (end) response?.end()
  if (error) response?.destroy()
})
await page.goto(`http://127.0.0.1:${files.address().port}/`)
await page.addScriptTag({ content: await readFile('page.js', 'utf8'), type: 'module' })
await page.waitForFunction('self.isReady')

let requests = 0
const server = createServer(async (request, response) => {
  const id = requests++
  const { url: path, method } = request
  const chunks = await request.toArray()
  const headers = Object.entries(request.headers).filter(([name]) => !OWN_HEADERS.test(name))
  const body = Buffer.concat(chunks).toString('base64')
  responses.set(id, response)
  response.on('close', () => {
    responses.delete(id)
    page.evaluate((ended) => self.abort(ended), id).catch(() => {})
  })
  // Not awaited: it lasts as long as the response.
  const argument = { id, init: { path, method, headers, body } }
  page.evaluate(({ id, init }) => void self.request(id, init), argument).catch(() => response.destroy())
})
server.listen(Number(PORT), '127.0.0.1')
