import { serveFetchEvents } from 'headwater/http'
import { openEngine } from './streams.js'

serveFetchEvents(openEngine, { prefix: '/streams' })
// Serve pages from the first visit on, not from the second.
addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
