// What the apps get to open an engine with. Appends of a record with the body `fail` fail in the storage.
import { createServer } from 'node:http'
import { open } from 'headwater'
import { faultyStorage } from 'headwater/testing'

/** Opens an engine, and prints its root token. */
export async function opened(storage) {
  const faulty = faultyStorage(storage, { notifications: 'reliable' })
  faulty.fail('append', { when: ({ blocks }) => new TextDecoder().decode(blocks[0].data).endsWith('fail') })
  const hw = await open({ storage: faulty })
  console.log(`root token: ${await hw.createRootToken()}`)
  // The engines of this process: development servers load this module again, and once for each bundle.
  globalThis.engines ??= servedStats([])
  globalThis.engines.push(hw)
  return hw
}

/** Serves the sum of what the engines have open, and prints where. */
function servedStats(engines) {
  const server = createServer((_, response) => {
    const sum = {}
    for (const hw of engines) {
      for (const [name, value] of Object.entries(hw.stats())) sum[name] = (sum[name] ?? 0) + value
    }
    response.end(JSON.stringify(sum))
  })
  server.listen(0, '127.0.0.1', () => console.log(`stats: http://127.0.0.1:${server.address().port}`))
  return engines
}
