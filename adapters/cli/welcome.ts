import { isIP } from 'node:net'
import type { NodeServer } from '../node/index.ts'
import type { StorageName } from './cli-context.ts'

const STORAGE_NOTES = { memory: 'gone when the process ends' } satisfies Record<StorageName, string>

/** What `headwater serve` prints when it is ready. Every line that begins with `curl` works as it stands. */
export function welcome({ url }: Pick<NodeServer, 'url'>, storage: StorageName): string[] {
  const json = `-H 'content-type: application/json'`
  const basin = `-H 'svc-basin: my-basin'`
  const records = `${url}/v1/streams/greetings/records`
  return [
    `headwater serves ${url}`,
    `Storage: ${storage} (${STORAGE_NOTES[storage]})`,
    `Health:  ${url}/health`,
    '',
    'Create a basin, append a record, read it back:',
    '',
    `curl -X PUT ${url}/v1/basins/my-basin ${json} -d '{"config":{"create_stream_on_append":true}}'`,
    `curl ${records} ${basin} ${json} -d '{"records":[{"body":"hello"}]}'`,
    `curl '${records}?seq_num=0' ${basin}`,
    '',
    'Press Ctrl+C to stop.',
  ]
}

export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}
