import { YjsProvider } from '@durable-streams/y-durable-streams'
import * as Y from 'yjs'
import { bindText } from './bind-text.ts'

const doc = new Y.Doc()
const baseUrl = new URL('/v1/yjs/notes', location.href).href
const provider = new YjsProvider({ doc, baseUrl, docId: 'shared' })

const app = document.getElementById('app')!
const area = Object.assign(document.createElement('textarea'), { ariaLabel: 'Text', disabled: true })
const status = document.createElement('p')
status.setAttribute('role', 'status')
const heading = Object.assign(document.createElement('h1'), { textContent: 'Shared document' })
app.append(heading, area, status)

bindText(doc.getText('body'), area)
provider.on('synced', (isSynced) => {
  area.disabled = false
  status.textContent = isSynced ? 'Up to date' : 'Connecting …'
})
provider.on('error', (error) => console.warn(error))
