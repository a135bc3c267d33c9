import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { memoryStorage } from '../../adapters/storage/memory/storage.ts'

describe('memory conforms to the storage contract while idle logs and documents are packed', () => {
  const suite = conformanceSuite({
    manifest: memory().manifest,
    make: async () => ({ storage: await packing(), dispose: async () => {} }),
    keepsDataWhenClosed: true,
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }
})

/** A storage that packs every log that is not in use, and every document. */
async function packing() {
  const storage = memoryStorage(0)
  return storage
}
