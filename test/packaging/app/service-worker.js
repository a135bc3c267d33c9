import { open } from 'headwater'
import { serveFetchEvents } from 'headwater/http'
import { indexedDb } from 'headwater/indexeddb'

serveFetchEvents(() => open({ storage: indexedDb('in-a-service-worker') }), { open: true, basin: 'app' })
addEventListener('activate', (event) => event.waitUntil(clients.claim()))
