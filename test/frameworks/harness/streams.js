// What the apps import as `./streams.js`. Appends of a record with the body `fail` fail in the storage.
import { open } from 'headwater'
import { memory } from 'headwater/memory'
import { faultyStorage } from 'headwater/testing'

const storage = faultyStorage(memory(), { notifications: 'reliable' })
storage.fail('append', { when: ({ block }) => new TextDecoder().decode(block.data).endsWith('fail') })

export const hw = await open({ storage })
console.log(`root token: ${await hw.createRootToken()}`)
