import type { AppendConditions, BytesOrText, RecordInput } from '../../src/model/append-input.ts'
import { encodeBase64 } from '../../src/model/bytes.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { queryText, readQueryParts } from '../../src/wire/query.ts'
import type { ConnectionTarget, StreamTarget } from './connection.ts'

/** The stream of a command. */
type CurlTarget = Omit<StreamTarget, 'handle'>

/** A request to show as a command, without its access token. */
export interface CurlCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The part after `/v1`, encoded, with the query. */
  readonly path: string
  /** The basin of requests about streams. */
  readonly basin?: string | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  /** How JSON carries the bytes of records. Default `raw`. */
  readonly format?: 'raw' | 'base64' | undefined
  readonly accept?: string | undefined
  readonly encryptionKey?: string | undefined
}

const recordsPath = (stream: string) => `/streams/${encodeURIComponent(stream)}/records`

/** Returns the call of a read, with Server-Sent Events if it waits forever. */
export function readCall({ basin, stream, encryptionKey }: CurlTarget, query: ReadQuery): CurlCall {
  const follows = query.waitMs === Number.POSITIVE_INFINITY
  const path = `${recordsPath(stream)}${queryText(readQueryParts(query, follows ? 'session' : 'unary'))}`
  return { method: 'GET', path, basin, encryptionKey, ...(follows && { accept: 'text/event-stream' }) }
}

/** The call of an append: its records in base64 if they have bytes. */
export function appendCall(
  { basin, stream, encryptionKey }: CurlTarget,
  records: readonly Exclude<RecordInput, BytesOrText>[],
  { matchSeqNum, fencingToken }: AppendConditions,
): CurlCall {
  const isBinary = records.some(({ body }) => typeof body === 'object')
  const form = (part: BytesOrText) => (typeof part === 'object' ? encodeBase64(part) : part)
  const wireRecords = records.map(({ timestamp, headers, body }) => ({
    timestamp,
    headers: headers?.map(([name, value]) => [form(name), form(value)]),
    body: body && form(body),
  }))
  return {
    method: 'POST',
    path: recordsPath(stream),
    basin,
    body: { records: wireRecords, match_seq_num: matchSeqNum, fencing_token: fencingToken },
    format: isBinary ? 'base64' : 'raw',
    encryptionKey,
  }
}

/**
 * A shell command for a call. The access token and the encryption key are the variables `HEADWATER_TOKEN` and
 * `ENCRYPTION_KEY`: neither is ever part of the text.
 */
export function curlCommand(call: CurlCall, target: ConnectionTarget, isAuthorized: boolean): string {
  const { method, path, basin, body, format = 'raw', accept, encryptionKey = '' } = call
  const prefix = target.headerPrefix
  const headers = [
    isAuthorized && '"authorization: Bearer $HEADWATER_TOKEN"',
    basin !== undefined && quotedForShell(`${prefix}-basin: ${basin}`),
    accept !== undefined && quotedForShell(`accept: ${accept}`),
    body !== undefined && quotedForShell('content-type: application/json'),
    format !== 'raw' && quotedForShell(`${prefix}-format: ${format}`),
    encryptionKey !== '' && `"${prefix}-encryption-key: $ENCRYPTION_KEY"`,
  ]
  const isDefaultMethod = method === (body === undefined ? 'GET' : 'POST')
  const lines = [
    `curl${accept === 'text/event-stream' ? ' -N' : ''}${isDefaultMethod ? '' : ` -X ${method}`} ${quotedForShell(`${target.url}/v1${path}`)}`,
    ...headers.flatMap((header) => (header === false ? [] : `  -H ${header}`)),
    ...(body === undefined ? [] : [`  -d ${quotedForShell(JSON.stringify(body))}`]),
  ]
  return lines.join(' \\\n')
}

function quotedForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** A command of `headwater` that reads one record. The token is the variable `HEADWATER_TOKEN`. */
export function readCommand(
  { basin, stream, encryptionKey }: CurlTarget,
  { seqNum }: Pick<SequencedRecord, 'seqNum'>,
  { url }: ConnectionTarget,
): string {
  const key = encryptionKey === '' ? '' : ' --encryption-key "$ENCRYPTION_KEY"'
  const name = quotedForShell(`${basin}/${stream}`)
  return `headwater read ${name} --seq-num ${seqNum} --limit 1 --json${key} --url ${quotedForShell(url)}`
}

/** A program that reads one record. */
export function readProgram(
  { basin, stream, encryptionKey }: CurlTarget,
  { seqNum }: Pick<SequencedRecord, 'seqNum'>,
  { url, headerPrefix }: ConnectionTarget,
  isAuthorized: boolean,
): string {
  const options = [
    `url: ${JSON.stringify(url)}`,
    ...(isAuthorized ? ['token: process.env.HEADWATER_TOKEN'] : []),
    ...(headerPrefix === 'svc' ? [] : [`headerPrefix: ${JSON.stringify(headerPrefix)}`]),
  ]
  const key = encryptionKey === '' ? '' : ', { encryptionKey: process.env.ENCRYPTION_KEY }'
  return `import { connect } from 'headwater/client'

const hw = await connect({ ${options.join(', ')} })
const stream = hw.basin(${JSON.stringify(basin)}).stream(${JSON.stringify(stream)}${key})
const { records } = await stream.readBatch({ seqNum: ${seqNum}, count: 1 })
console.log(records[0])
`
}
