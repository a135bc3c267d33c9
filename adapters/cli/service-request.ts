import { HeadwaterError } from '../../src/index.ts'
import { objectOf, required, stringOf } from '../../src/wire/json-members.ts'
import { readJson } from '../../src/wire/json-reader.ts'
import type { CliContext } from './cli-context.ts'
import { CliError, ServiceError } from './failure.ts'
import { printable } from './printable.ts'
import { type ServicePlace, shownUrl } from './token-place.ts'

const TIMEOUT_MS = 30_000
/** Far above a page of 1,000 tokens. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024

export interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With its query. */
  readonly path: string
  readonly body?: Uint8Array
}

/**
 * Asks a service and resolves to the body of its answer, of at most 16 MiB.
 *
 * @throws ServiceError for an error of the service, CliError when there is no answer in 30 s, or none of such a service.
 */
export async function askService(
  { url, token }: ServicePlace,
  { method, path, body }: ServiceRequest,
  { fetch, clock }: Pick<CliContext, 'fetch' | 'clock'>,
): Promise<Uint8Array> {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  const timeout = new AbortController()
  const cancel = clock.schedule(TIMEOUT_MS, () => timeout.abort())
  // A redirection is not followed: it would turn a POST into a GET, or take the token elsewhere.
  const init: RequestInit = { method, headers, redirect: 'manual', signal: timeout.signal }
  if (body !== undefined) init.body = body as Uint8Array<ArrayBuffer>
  try {
    const response = await fetch(new Request(`${url}${path}`, init))
    const answer = await bodyOf(response)
    if (response.ok && answer !== undefined) return answer
    throw refusal(response.status, answer, url)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unreachable(error, { url, method, timedOut: timeout.signal.aborted })
  } finally {
    cancel()
  }
}

/** What answers, but not as such a service does. */
export function strangeAnswer(url: string, problem: string): CliError {
  return new CliError(1, `${shownUrl(url)} is no such service: ${problem}`)
}

/** Undefined when it is too long. */
async function bodyOf(response: Response): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  if (response.body === null) return new Uint8Array()
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > ANSWER_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

function refusal(status: number, answer: Uint8Array | undefined, url: string): CliError {
  try {
    const error = objectOf(readJson(answer ?? new Uint8Array()), 'body')
    return new ServiceError(required(error, 'code', stringOf), required(error, 'message', stringOf))
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return strangeAnswer(
      url,
      answer === undefined ? 'its answer is too long' : `it answered with status ${status}`,
    )
  }
}

function unreachable(
  error: unknown,
  { url, method, timedOut }: { readonly url: string; readonly method: string; readonly timedOut: boolean },
): CliError {
  const cause = (error as { cause?: { code?: unknown; message?: unknown } }).cause
  const neverAsked = cause?.code === 'ECONNREFUSED' || cause?.code === 'ENOTFOUND'
  const reason = timedOut
    ? `no answer within ${TIMEOUT_MS / 1000} seconds`
    : cause?.code === 'ECONNREFUSED'
      ? 'connection refused'
      : printable(String(cause?.message || (error as Error).message))
  const doubt = method === 'GET' || neverAsked ? '' : '. What was asked for may have been done all the same'
  return new CliError(1, `cannot reach ${shownUrl(url)}: ${reason}${doubt}`)
}
