// @module-tag slow

import { YjsProvider } from '@durable-streams/y-durable-streams'
import { YjsServer } from '@durable-streams/y-durable-streams/server'
import { expect, it, onTestFinished, vi } from 'vitest'
import * as Y from 'yjs'
import { serve } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { BASIN } from './support.ts'

const patiently = { timeout: 60_000, interval: 20 }

it('a document of several MiB is edited, compacted to a snapshot, and loaded by another editor', async () => {
  const hw = await open({ storage: testStorage() })
  onTestFinished(() => hw.close())
  const server = await serve(hw, { auth: 'none', durableStreams: { basin: BASIN } })
  onTestFinished(() => server.close({ graceMs: 0 }))
  const yjs = new YjsServer({ port: 0, dsServerUrl: server.url, compactionThreshold: 1_000_000 })
  await yjs.start()
  onTestFinished(() => yjs.stop())
  const baseUrl = `${yjs.url}/v1/yjs/app`
  const edit = async () => {
    const doc = new Y.Doc()
    const provider = new YjsProvider({ doc, baseUrl, docId: 'large' })
    onTestFinished(() => provider.destroy())
    await vi.waitFor(() => expect(provider.synced).toBe(true), patiently)
    return { provider, text: doc.getText('text') }
  }
  const first = await edit()
  const follower = await edit()
  const content = Array.from({ length: 250_000 }, (_, index) => `${index} `).join('')
  first.text.insert(0, content)
  await first.provider.flush()
  await vi.waitFor(() => expect(follower.text.length).toBe(content.length), patiently)
  const snapshot = () => fetch(`${baseUrl}/docs/large?offset=snapshot`, { redirect: 'manual' })
  await vi.waitFor(async () => {
    const location = (await snapshot()).headers.get('location')
    expect(location).toMatch(/_snapshot$/)
  }, patiently)
  first.text.insert(content.length, 'end')
  await first.provider.flush()
  const late = await edit()
  await vi.waitFor(() => expect(late.text.length).toBe(content.length + 3), patiently)
  expect(late.text.toString() === `${content}end`).toBe(true)
})
