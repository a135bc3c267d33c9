import type { AppendConditions, BytesOrText, RecordInput } from '../../src/model/append-input.ts'
import { encodeBase64 } from '../../src/model/bytes.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { queryText, readQueryParts } from '../../src/wire/query.ts'
import type { Connection, StreamTarget } from './connection.ts'

/** The stream of a command. */
type CurlTarget = Omit<StreamTarget, 'handle'>

/** The server of a command, and whether it takes a token. */
type Server = Pick<Connection, 'target' | 'isAuthorized'>

/** A request to show as a command, without its access token. */
export interface CurlCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The part after `/v1`, encoded, with the query. */
  readonly path: string
  /** The stream that it is about. */
  readonly target?: CurlTarget | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  /** How JSON carries the bytes of records. Default `raw`. */
  readonly format?: 'raw' | 'base64' | undefined
  readonly accept?: 'text/event-stream' | undefined
}

const recordsPath = ({ stream }: CurlTarget) => `/streams/${encodeURIComponent(stream)}/records`

/** Returns the call of a read, with Server-Sent Events if it waits forever. */
export function readCall(target: CurlTarget, query: ReadQuery): CurlCall {
  const follows = query.waitMs === Number.POSITIVE_INFINITY
  const parts = queryText(readQueryParts(query, follows ? 'session' : 'unary'))
  return {
    method: 'GET',
    path: `${recordsPath(target)}${parts}`,
    target,
    accept: follows ? 'text/event-stream' : undefined,
  }
}

/** The call of an append: its records in base64 if they have bytes. */
export function appendCall(
  target: CurlTarget,
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
    path: recordsPath(target),
    target,
    body: { records: wireRecords, match_seq_num: matchSeqNum, fencing_token: fencingToken },
    format: isBinary ? 'base64' : 'raw',
  }
}

/**
 * A shell command for a call. The access token and the encryption key are the variables `HEADWATER_TOKEN` and
 * `ENCRYPTION_KEY`: neither is ever part of the text.
 */
export function curlCommand(call: CurlCall, { target: server, isAuthorized }: Server): string {
  const { method, path, target, body, format = 'raw', accept } = call
  const { url, headerPrefix } = server
  const headers = [
    isAuthorized && '"authorization: Bearer $HEADWATER_TOKEN"',
    target && quotedForShell(`${headerPrefix}-basin: ${target.basin}`),
    accept && quotedForShell(`accept: ${accept}`),
    body !== undefined && quotedForShell('content-type: application/json'),
    format !== 'raw' && quotedForShell(`${headerPrefix}-format: ${format}`),
    target?.encryptionKey && `"${headerPrefix}-encryption-key: $ENCRYPTION_KEY"`,
  ]
  const isDefaultMethod = method === (body === undefined ? 'GET' : 'POST')
  const options = `${accept ? ' -N' : ''}${isDefaultMethod ? '' : ` -X ${method}`}`
  const lines = [
    `curl${options} ${quotedForShell(`${url}/v1${path}`)}`,
    ...headers.filter(Boolean).map((header) => `  -H ${header}`),
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
  { target: { url } }: Server,
): string {
  const key = encryptionKey === '' ? '' : ' --encryption-key "$ENCRYPTION_KEY"'
  const name = quotedForShell(`${basin}/${stream}`)
  return `headwater read ${name} --seq-num ${seqNum} --limit 1 --json${key} --url ${quotedForShell(url)}`
}

/** A program that reads one record. */
export function readProgram(
  { basin, stream, encryptionKey }: CurlTarget,
  { seqNum }: Pick<SequencedRecord, 'seqNum'>,
  { target: { url, headerPrefix }, isAuthorized }: Server,
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
