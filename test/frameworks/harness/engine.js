// What apps with a build import as `./engine.js`. As in `streams.js`, appends of the record `fail` fail.
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { openOnce } from 'headwater/http'
import { faultyStorage } from 'headwater/testing'

export const engine = openOnce(async () => {
  const storage = faultyStorage(filesystem(`./data-${process.env.PORT}`))
  storage.fail('append', { when: ({ block }) => new TextDecoder().decode(block.data).endsWith('fail') })
  const hw = await open({ storage })
  console.log(`root token: ${await hw.createRootToken()}`)
  engines.push(hw)
  return hw
})

/** The engines of this process: development servers load this module again, and once for each bundle. */
globalThis.engines ??= []
const { engines } = globalThis

/** The sum of what all engines have open. */
export async function stats() {
  await engine()
  const sum = {}
  for (const hw of engines) {
    for (const [name, value] of Object.entries(hw.stats())) sum[name] = (sum[name] ?? 0) + value
  }
  return sum
}
