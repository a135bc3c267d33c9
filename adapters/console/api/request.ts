/** A request of the wire protocol, without its access token and encryption key. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The segments after `/v1/`, not encoded. */
  readonly path: readonly string[]
  /** The basin of requests about streams. */
  readonly basin?: string | undefined
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** How JSON carries the bytes of records. Default `raw`. */
  readonly format?: 'raw' | 'base64'
  readonly accept?: string
  readonly encryptionKey?: string | undefined
}

/** Where requests are sent. */
export interface Target {
  readonly url: string
  readonly basinUrl: string | undefined
  readonly headerPrefix: string
}

/** The URL of a call. */
export function urlOf({ path, basin, query = {} }: Call, { url, basinUrl }: Target): string {
  const base = basin !== undefined && basinUrl !== undefined ? basinUrl.replace('{basin}', basin) : url
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') parameters.set(name, String(value))
  }
  const search = parameters.size === 0 ? '' : `?${parameters}`
  return `${base.replace(/\/+$/, '')}/v1/${path.map(encodeURIComponent).join('/')}${search}`
}

/** The headers of a call, without `authorization` and the encryption key. */
export function headersOf(call: Call, { basinUrl, headerPrefix }: Target): Record<string, string> {
  const { basin, body, format, accept } = call
  return {
    ...(basin !== undefined && basinUrl === undefined && { [`${headerPrefix}-basin`]: basin }),
    ...(accept !== undefined && { accept }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(format !== undefined && format !== 'raw' && { [`${headerPrefix}-format`]: format }),
  }
}

/**
 * A shell command for a call. The access token and the encryption key are the variables `HEADWATER_TOKEN` and
 * `ENCRYPTION_KEY`: neither is ever part of the text.
 */
export function curlCommand(call: Call, target: Target, authorized: boolean): string {
  const headers = Object.entries(headersOf(call, target)).map(([name, value]) => quoted(`${name}: ${value}`))
  if (authorized) headers.unshift('"authorization: Bearer $HEADWATER_TOKEN"')
  if (call.encryptionKey !== undefined && call.encryptionKey !== '') {
    headers.push(`"${target.headerPrefix}-encryption-key: $ENCRYPTION_KEY"`)
  }
  const isDefaultMethod = call.method === (call.body === undefined ? 'GET' : 'POST')
  const lines = [
    `curl${call.accept === 'text/event-stream' ? ' -N' : ''}${isDefaultMethod ? '' : ` -X ${call.method}`} ${quoted(urlOf(call, target))}`,
    ...headers.map((header) => `  -H ${header}`),
    ...(call.body === undefined ? [] : [`  -d ${quoted(JSON.stringify(call.body))}`]),
  ]
  return lines.join(' \\\n')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
