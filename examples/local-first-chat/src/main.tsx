import { open } from 'headwater'
import { connect } from 'headwater/client'
import { indexedDb } from 'headwater/indexeddb'
import { syncedBasin } from 'headwater/sync'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import './style.css'

// This device and the server. Whether the server can be reached makes no difference here.
const hw = await open({ storage: indexedDb('local-first-chat') })
const server = await connect({ url: location.origin })
await hw.ensureBasin('chat', { defaultStreamConfig: { retentionPolicy: 'infinite' } })
const rooms = await syncedBasin({
  remote: server.basin('chat'),
  local: hw.basin('chat'),
  prefix: 'rooms/',
  from: { tailOffset: 1_000 },
  discoverMs: 5_000,
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App rooms={rooms} />
  </StrictMode>,
)
if (import.meta.env.PROD) navigator.serviceWorker?.register('/service-worker.js')
