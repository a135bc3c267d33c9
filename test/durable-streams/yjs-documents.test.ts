// @module-tag slow

import { YjsProvider } from '@durable-streams/y-durable-streams'
import { YjsServer } from '@durable-streams/y-durable-streams/server'
import { expect, it, onTestFinished, vi } from 'vitest'
import * as Y from 'yjs'
import { serve } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { BASIN } from './support.ts'

it('a document of several MiB is compacted twice, and edited by two editors before and after', async () => {
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
    await vi.waitFor(() => expect(provider.synced).toBe(true))
    return { provider, text: doc.getText('text') }
  }
  const first = await edit()
  const second = await edit()
  const snapshot = async () => {
    const response = await fetch(`${baseUrl}/docs/large?offset=snapshot`, { redirect: 'manual' })
    return response.headers.get('location') ?? ''
  }
  let expected = ''
  const write = async (editor: typeof first, text: string) => {
    editor.text.insert(editor.text.length, text)
    await editor.provider.flush()
    expected += text
    for (const other of [first, second]) {
      await vi.waitFor(() => expect(other.text.length).toBe(expected.length))
    }
  }
  let compacted = ''
  for (const round of ['first', 'second']) {
    await write(first, Array.from({ length: 250_000 }, (_, index) => `${index} `).join(''))
    await write(second, `${round} round`)
    await vi.waitFor(async () => {
      const location = await snapshot()
      expect(location).toMatch(/_snapshot$/)
      expect(location).not.toBe(compacted)
    })
    compacted = await snapshot()
    await write(second, 'by the second')
    await write(first, 'by the first')
  }
  const late = await edit()
  await vi.waitFor(() => expect(late.text.length).toBe(expected.length))
  for (const { text } of [first, second, late]) expect(text.toString() === expected).toBe(true)
})
