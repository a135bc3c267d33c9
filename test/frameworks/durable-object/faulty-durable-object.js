// The build takes this for `headwater/durable-object`. Appends of a record with the body `fail` fail.
import { faultyStorage } from 'headwater/testing'
import { durableObject as withoutFaults } from './node_modules/headwater/dist/durable-object.js'

export function durableObject(ctxStorage) {
  const storage = faultyStorage(withoutFaults(ctxStorage))
  storage.fail('append', { when: ({ blocks }) => new TextDecoder().decode(blocks[0].data).endsWith('fail') })
  return storage
}
