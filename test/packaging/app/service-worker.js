import { open } from 'headwater'
import { serveFetchEvents } from 'headwater/http'
import { indexedDb } from 'headwater/indexeddb'
import { usageMetrics } from 'headwater/usage'

const storage = indexedDb('in-a-service-worker')
serveFetchEvents(() => open({ storage, usage: usageMetrics() }), { auth: 'none', basin: 'app' })
addEventListener('activate', (event) => event.waitUntil(clients.claim()))
