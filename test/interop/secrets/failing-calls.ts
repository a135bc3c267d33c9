import { StorageFailure } from '../../../src/storage/errors.ts'
import { BASIN, KEYS, SEALED_TEXTS } from './material.ts'
import type { RecordingClient } from './misplaced-secrets.ts'

/** Failures of a storage of every kind, and one that is unknown to the contract. */
export const FAILURES: readonly (() => unknown)[] = [
  () => new StorageFailure('io', 'the disk is away', { nothingWritten: true }),
  () => new StorageFailure('corrupt', 'damaged', { nothingWritten: false, cause: new Error('a sector') }),
  () => new TypeError('a defect of the storage'),
]

/** The HTTP requests that need the storage. */
export async function failingCalls(
  client: RecordingClient,
  tokens: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [who, token] of Object.entries(tokens).slice(0, 2)) {
    for (const encryptionKey of Object.values(KEYS).slice(0, 2)) {
      const headers = {
        authorization: `Bearer ${token}`,
        'svc-basin': BASIN,
        'svc-encryption-key': encryptionKey,
        'content-type': 'application/json',
      }
      const ask = (method: string, path: string, more: object = {}, body?: string) =>
        client.request('answers', `${who} while the storage fails: ${method} ${path}`, path, {
          method,
          headers: { ...headers, ...more },
          ...(body !== undefined && { body }),
        })
      const text = JSON.stringify({ records: [{ body: SEALED_TEXTS['a sealed body'] }] })
      await ask('GET', '/v1/basins')
      await ask('GET', '/v1/access-tokens')
      await ask('POST', '/v1/access-tokens', {}, '{"id":"fine","scope":{"ops":["read"]}}')
      await ask('DELETE', '/v1/access-tokens/nobody')
      await ask('POST', '/v1/streams/letters/records', {}, text)
      const wrong = encryptionKey !== KEYS['the right key']
      if (wrong) await ask('GET', '/v1/streams/letters/records?seq_num=0&count=1')
      if (wrong)
        await ask('GET', '/v1/streams/letters/records?seq_num=0&count=1', { accept: 'text/event-stream' })
      await ask('GET', '/v1/streams/nothing/records/tail')
    }
  }
}
