import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import { type NodeServer, serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Headwater, open } from '../../src/index.ts'
import type { Variant } from './bundle.ts'
import {
  describeInChromium,
  type Launch,
  type Launched,
  launch,
  newProfile,
  type Profile,
} from './chromium.ts'
import { servePages } from './page-server.ts'
import type * as WorkerCaller from './pages/worker-caller.ts'

/** For conditions that nothing announces. The machine may be busy. */
export const PATIENCE = { timeout: 15_000, interval: 5 }

export interface Browser {
  /** The origin of the pages. */
  readonly origin: string
  /** For what a page cannot do by itself. */
  readonly context: BrowserContext
  /** Starts the browser again, on the same profile, after `end` brought it to its end. */
  relaunch(end: () => Promise<void>): Promise<void>
  /** Opens an empty page, `/` or `/wasm`: see `servePages`. It is closed with the test, and nothing may have been thrown in it unseen. */
  page(path?: string): Promise<Page>
}

export interface BrowserOptions {
  readonly args?: readonly string[]
  readonly launch?: Launch
}

/** A suite in Chromium, with a fresh profile. Where there is none it is skipped, unless `CI` is set: then it fails. */
export function inChromium(
  title: string,
  suite: (browser: Browser) => void,
  options: BrowserOptions = {},
): void {
  describeInChromium(title, () => suite(browserOfSuite(options)))
}

function browserOfSuite(options: BrowserOptions): Browser {
  const { args = [], launch: start = launch } = options
  let profile: Profile
  let launched: Launched
  let pages: Awaited<ReturnType<typeof servePages>>
  beforeAll(async () => {
    profile = await newProfile()
    pages = await servePages()
    launched = await start(profile, args)
  })
  afterAll(async () => {
    await launched?.close()
    await pages?.close()
    await profile?.remove()
  })
  return {
    get origin() {
      return pages.url
    },
    get context() {
      return launched.context
    },
    async relaunch(end) {
      await end()
      launched = await start(profile, args)
    },
    async page(path = '/') {
      const page = await launched.context.newPage()
      const thrown: Error[] = []
      page.on('pageerror', (error) => thrown.push(error))
      onTestFinished(async () => {
        await page.close()
        expect(thrown).toEqual([])
      })
      await page.goto(`${pages.url}${path}`)
      return page
    },
  }
}

type Exports = Readonly<Record<string, (...args: never[]) => unknown>>

/** The functions of a script of `pages/`, called from here. Arguments and results are copied; bytes stay bytes. */
export type Remote<Script extends Exports> = {
  readonly [Name in keyof Script]: (
    ...args: Parameters<Script[Name]>
  ) => Promise<Awaited<ReturnType<Script[Name]>>>
}

/** A script of `pages/` loaded into a page. */
export async function scriptIn<Script extends object>(
  page: Page,
  script: string,
  variant: Variant = 'sources',
): Promise<Remote<Script & Exports>> {
  // As text: what transforms this file would make another function of `import`.
  const module = await page.evaluateHandle<Exports>(`import('/${variant}/${script}.js')`)
  return remote((name, args) =>
    module.evaluate((exports, call) => exports[call.name]!(...(call.args as never[])), { name, args }),
  )
}

/** The same loaded into a dedicated worker of the page. */
export async function scriptInWorker<Script extends object>(
  page: Page,
  script: string,
  variant: Variant = 'sources',
): Promise<Remote<Script & Exports>> {
  const { call } = await scriptIn<typeof WorkerCaller>(page, 'worker-caller')
  return remote((name, args) => call({ path: `/${variant}/${script}.js`, name, args }))
}

/** The same loaded into a dedicated worker that lives as long as the page: its functions see what those called before have left. */
export async function scriptInKeptWorker<Script extends object>(
  page: Page,
  script: string,
  variant: Variant = 'sources',
): Promise<Remote<Script & Exports>> {
  const { callKept } = await scriptIn<typeof WorkerCaller>(page, 'worker-caller')
  return remote((name, args) => callKept({ path: `/${variant}/${script}.js`, name, args }))
}

function remote<Script extends Exports>(
  call: (name: string, args: readonly unknown[]) => Promise<unknown>,
): Remote<Script> {
  // A promise resolved with it must not take it for one.
  const get = (_: object, name: string) =>
    name === 'then' ? undefined : (...args: unknown[]) => call(name, args)
  return new Proxy({}, { get }) as Remote<Script>
}

/** A request as it came from the browser, and how it was answered. */
interface Exchange {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly status: number
}

/** An engine behind a server on an origin of its own. */
export interface Service {
  readonly hw: Headwater
  readonly url: string
  readonly exchanges: readonly Exchange[]
  /** The address of a basin: `EventSource` can name it in no other way. */
  urlOf(basin: string): string
  /** Drops every connection at once and listens again on the same port. */
  restart(): Promise<void>
  /** What is open in the engine and the server, streams kept at hand aside. */
  open(): Readonly<Record<string, number>>
  /** Waits until nothing is. */
  idle(): Promise<void>
}

/** Is closed with the test; then nothing may be open in it, and nothing have gone wrong inside. */
export async function startService(options: HandlerOptions = { open: true }): Promise<Service> {
  const hw = await open({ storage: memory() })
  const errors: unknown[] = []
  const exchanges: Exchange[] = []
  const onError = (error: unknown) => void errors.push(error)
  const handler = createHandler(hw, { ...options, onError })
  const recorded = async (request: Request) => {
    const response = await handler(request)
    const { pathname: path } = new URL(request.url)
    exchanges.push({ method: request.method, path, headers: request.headers, status: response.status })
    return response
  }
  const listen = (port: number): Promise<NodeServer> => serve(recorded, { port, onError })
  let server = await listen(0)
  const { port, url } = server
  const openNow = () => {
    const { cachedStreams: _, ...stats } = hw.stats()
    return { ...stats, requests: server.counts().requests }
  }
  const idle = () =>
    expect.poll(() => Object.entries(openNow()).filter(([, count]) => count > 0), PATIENCE).toEqual([])
  onTestFinished(async () => {
    // Closing the engine ends the sessions that the server would wait for.
    await Promise.all([server.close({ graceMs: 1_000 }), hw.close()])
    expect(errors).toEqual([])
  })
  return {
    hw,
    url,
    exchanges,
    urlOf: (basin) => `http://${basin}.localhost:${port}`,
    async restart() {
      await server.close({ graceMs: 0 })
      server = await listen(port)
    },
    open: openNow,
    idle,
  }
}
