// @module-tag slow

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { connect } from '../../../adapters/client/index.ts'
import { type KillableServer, killableServer } from '../../cli/killable-server.ts'
import { program } from '../../cli/program.ts'
import type * as SyncedPage from '../pages/synced.ts'
import { type Browser, inChromium, type Remote, scriptIn } from '../support.ts'

const headwater = program()

interface Device {
  readonly page: Page
  readonly script: Remote<typeof SyncedPage>
  /** What was appended and is durable on the device. */
  readonly durable: readonly string[]
}

async function open(browser: Browser, { url }: KillableServer, database: string): Promise<Device> {
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

const startServer = () => killableServer(headwater, '--allow-origin', '*')

/** The bodies of all records on the server, in order. */
async function stored({ url }: KillableServer): Promise<string[]> {
  const server = await connect({ url })
  const records = await server.basin('my-first-app').stream('s').read().toArray()
  await server.close()
  return records.map(({ body }) => body)
}

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`)
const of = (name: string, bodies: readonly string[]) => bodies.filter((body) => body.startsWith(name))

inChromium('a synced stream in a profile of a browser', (one) => {
  inChromium('and in another profile', (other) => {
    it('has everything once and in order, while the server is killed and a profile is offline', async () => {
      const server = await startServer()
      const [ada, ben] = [await open(one, server, 'killed'), await open(other, server, 'killed')]
      for (let round = 0; round < 2; round++) {
        const appended = [
          ada.script.append(numbered(`ada ${round}`, 20)),
          ben.script.append(numbered(`ben ${round}`, 20)),
        ]
        await server.kill()
        await Promise.all(appended)
        await ada.script.append([`ada ${round} while the server is down`])
        await other.context.setOffline(true)
        await server.start()
        await ben.script.append([`ben ${round} while offline`])
        await ada.script.flush()
        await other.context.setOffline(false)
      }
      await Promise.all([ada.script.flush(), ben.script.flush()])
      const bodies = await stored(server)
      expect(bodies).toHaveLength(2 * 2 * 21)
      for (const { script } of [ada, ben]) {
        await expect.poll(() => script.shown()).toEqual(bodies)
        expect(await script.misbehaviour()).toEqual([])
      }
      expect(of('ada', bodies)).toEqual(ada.durable)
      expect(of('ben', bodies)).toEqual(ben.durable)
    })
  })
})
