// What the worker imports as `./streams.js`. Appends of a record with the body `fail` fail in the storage.
import { open } from 'headwater'
import { memory } from 'headwater/memory'
import { faultyStorage } from 'headwater/testing'

const storage = faultyStorage(memory(), { notifications: 'reliable' })
storage.fail('append', { when: ({ blocks }) => new TextDecoder().decode(blocks[0].data).endsWith('fail') })

export const hw = await open({ storage })
