// @module-tag slow

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { connect } from '../../../adapters/client/index.ts'
import { toNodeHandler } from '../../../adapters/node/index.ts'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import { type KillableServer, killableServer } from '../../cli/killable-server.ts'
import { program } from '../../cli/program.ts'
import type * as SyncedPage from '../pages/synced.ts'
import { type Browser, inChromium, type Remote, scriptIn } from '../support.ts'

const headwater = program()

interface Tab {
  readonly page: Page
  readonly script: Remote<typeof SyncedPage>
  /** What was appended and is durable on the device. */
  readonly durable: readonly string[]
}

async function openTab(browser: Browser, { url }: KillableServer, database: string): Promise<Tab> {
  const page = await browser.page()
  const durable: string[] = []
  page.on('console', (message) => {
    const [, body] = /^durable: (.*)$/.exec(message.text()) ?? []
    if (body !== undefined) durable.push(body)
  })
  const script = await scriptIn<typeof SyncedPage>(page, 'synced')
  await script.start(url, database)
  return { page, script, durable }
}

/** An app that serves streams by a handler, among its other pages. */
async function appServer(): Promise<KillableServer> {
  const directory = join(headwater.directory, 'app')
  let hw: Engine
  let server: Server | undefined
  let port = 0
  const kill = async () => {
    server!.closeAllConnections()
    await Promise.all([once(server!.close(), 'close'), hw.close()])
  }
  const start = async () => {
    hw = await open({ storage: filesystem(directory) })
    server = createServer(toNodeHandler(hw, { auth: 'none', cors: true }))
    await once(server.listen(port, '127.0.0.1'), 'listening')
    port = (server.address() as AddressInfo).port
  }
  await start()
  onTestFinished(kill)
  return { url: `http://127.0.0.1:${port}`, kill, start }
}

/** The bodies of all records on the server, in order. */
async function stored({ url }: KillableServer): Promise<string[]> {
  const server = await connect({ url })
  const records = await server.basin('my-first-app').stream('s').read().toArray()
  await server.close()
  return records.map(({ body }) => body)
}

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`)
const of = (name: string, bodies: readonly string[]) => bodies.filter((body) => body.startsWith(name))

inChromium('synced streams in two tabs of a profile of a browser', (one) => {
  inChromium('and in two tabs of another profile', (other) => {
    it.each<[string, () => Promise<KillableServer>]>([
      ['headwater serve', () => killableServer(headwater, '--allow-origin', '*')],
      ['an app with a handler', appServer],
    ])(
      'have everything once and in order, while %s is killed and a profile is offline',
      async (database, serve) => {
        const server = await serve()
        const tabs = new Map<string, Tab>()
        for (const [name, browser] of Object.entries({ ada: one, anna: one, ben: other, bob: other }))
          tabs.set(name, await openTab(browser, server, database))
        const append = (name: string, bodies: readonly string[]) => tabs.get(name)!.script.append(bodies)
        for (let round = 0; round < 2; round++) {
          const appended = [...tabs.keys()].map((name) => append(name, numbered(`${name} ${round}`, 20)))
          await server.kill()
          await Promise.all(appended)
          await append('ada', [`ada ${round} while the server is down`])
          await other.context.setOffline(true)
          await server.start()
          await append('bob', [`bob ${round} while offline`])
          await tabs.get('anna')!.script.flush()
          await other.context.setOffline(false)
        }
        for (const { script } of tabs.values()) await script.flush()
        const bodies = await stored(server)
        expect(bodies).toHaveLength(2 * (4 * 20 + 2))
        for (const [name, { script, durable }] of tabs) {
          await expect.poll(() => script.shown()).toEqual(bodies)
          expect(await script.misbehaviour()).toEqual([])
          expect(of(name, bodies)).toEqual(durable)
        }
      },
    )
  })
})
