import { open } from 'headwater'
import { connect } from 'headwater/client'
import { indexedDb } from 'headwater/indexeddb'
import { syncedStream } from 'headwater/sync'
import * as Y from 'yjs'
import { bindText } from './bind-text.ts'
import './style.css'

// Each record is an update of the document. The stream stores them on this device, and syncs them.
const hw = await open({ storage: indexedDb('shared-document') })
const server = await connect({ url: location.origin })
const updates = syncedStream(
  server.basin('documents').stream('notes'),
  hw.basin('documents').stream('notes'),
  { as: 'bytes' },
)

const area = document.querySelector('textarea')!
const status = document.querySelector('[role="status"]')!
const doc = new Y.Doc()
bindText(doc.getText('body'), area)

// Updates of others, and earlier ones of this device. Yjs ignores those that it already has.
updates.view$.subscribe({
  next({ change, isCaughtUp }) {
    for (const { body } of change.inserted) Y.applyUpdate(doc, body, updates)
    if (isCaughtUp) area.disabled = false
  },
  error: showError,
})
doc.on('update', (update: Uint8Array, origin: unknown) => {
  if (origin !== updates) updates.append(update).catch(showError)
})

const STATES = {
  connecting: 'Connecting …',
  'catching-up': 'Loading …',
  live: 'Up to date',
  waiting: 'Waiting',
  offline: 'Offline: what you write is sent later',
  stopped: 'The document of the server is another one. What is here stays on this device.',
  closed: 'Closed',
}
updates.state$.subscribe(({ kind }) => {
  status.textContent = STATES[kind]
})

function showError(error: unknown) {
  status.textContent = error instanceof Error ? error.message : String(error)
}
