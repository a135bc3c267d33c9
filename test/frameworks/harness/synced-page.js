// A page of a device: it syncs a stream of the app with a database of the browser.
import { open } from 'headwater'
import { connect } from 'headwater/client'
import { indexedDb } from 'headwater/indexeddb'
import { syncedStream } from 'headwater/sync'

let stream
const rows = []

globalThis.start = async ({ url, basin, name }) => {
  // A token of a server that was restarted is not valid any more.
  const getToken = async () => (await fetch('/token')).text()
  const server = await connect({ url, getToken })
  const hw = await open({ storage: indexedDb('synced') })
  stream = syncedStream(server.basin(basin).stream(name), hw.basin(basin).stream(name))
  stream.view$.subscribe(({ change }) => rows.splice(change.index, change.removed, ...change.inserted))
}
globalThis.append = async (bodies) => {
  for (const body of bodies) await stream.append(body)
}
globalThis.flush = () => stream.outbox.flush()
globalThis.confirmed = () => rows.filter(({ isPending }) => !isPending).map(({ body }) => body)
