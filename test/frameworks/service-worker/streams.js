// What the service worker imports as `./streams.js`. Appends of a record with the body `fail` fail in the
// storage.
import { open } from 'headwater'
import { indexedDb } from 'headwater/indexeddb'
import { faultyStorage } from 'headwater/testing'

const storage = faultyStorage(indexedDb('my-app'))
storage.fail('append', { when: ({ block }) => new TextDecoder().decode(block.data).endsWith('fail') })
let opened

export function openEngine() {
  opened = openAndPrintToken()
  return opened
}

async function openAndPrintToken() {
  const hw = await open({ storage })
  const rootToken = await hw.createRootToken()
  if (rootToken !== undefined) console.log(`root token: ${rootToken}`)
  return hw
}

addEventListener('fetch', (event) => {
  if (new URL(event.request.url).pathname === '/stats') event.respondWith(stats())
})

async function stats() {
  const hw = await (opened ?? openEngine())
  return Response.json(hw.stats())
}
