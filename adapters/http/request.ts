import type { Engine, EngineStream, Operation, Resource } from '../../src/index.ts'
import { accessTokenIdProblem } from '../../src/model/access.ts'
import { textOf } from '../../src/model/bytes.ts'
import { KEY_CHARACTERS_MAX } from '../../src/model/encryption-key.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { basinNameProblem, requestTokenProblem, streamNameProblem } from '../../src/model/names.ts'
import {
  type DataFormat,
  HEADER_PREFIXES,
  type HeaderPrefix,
  parseDataFormat,
  STREAM_ID_HEADER,
  usedHeaderPrefix,
  type VendorHeader,
  vendorHeader,
  vendorHeaderName,
} from '../../src/wire/headers.ts'
import { decodeStreamConfigHeader } from '../../src/wire/json-config.ts'
import type { RequestExchange } from './exchange.ts'
import type { HandlerSettings } from './options.ts'
import type { Reply } from './reply.ts'
import type { RouteMatch } from './router.ts'

/** Replies to a request. `hw` is the engine with the caller's permissions. */
export type Endpoint = (request: ApiRequest, hw: Engine) => Reply | Promise<Reply>

/** One method of a path. */
export interface Method {
  readonly endpoint: Endpoint
  /**
   * The operations of which the caller needs at least one. `'public'` requires no token; `'metrics'` requires
   * `account-metrics` unless the option `publicMetrics` is set.
   */
  readonly operations: readonly Operation[] | 'public' | 'metrics'
}

/** The endpoints of a path by HTTP method. `GET` also serves `HEAD`, unless that has an entry. */
export type Methods = Readonly<Record<string, Method>>

/** An endpoint that requires one of these operations. */
export function permitted(endpoint: Endpoint, ...operations: readonly Operation[]): Method {
  return { endpoint, operations }
}

type NameProblem = (name: string) => string | undefined

/** A request whose route is known. Names are decoded and validated when they are first used. */
export class ApiRequest {
  readonly exchange: RequestExchange
  readonly settings: HandlerSettings
  /** The engine with all permissions; set before the endpoint is called. */
  owner!: Engine
  /** The identity of the stream that the request has used. */
  streamId: string | undefined
  readonly #match: RouteMatch<unknown>
  #basin: string | undefined
  #stream: string | undefined
  #headerPrefix: HeaderPrefix | undefined

  constructor(exchange: RequestExchange, match: RouteMatch<unknown>, settings: HandlerSettings) {
    this.exchange = exchange
    this.settings = settings
    this.#match = match
  }

  get query(): string {
    return this.exchange.query
  }

  /**
   * The basin in the path, or else the one that the request is addressed to. Throws 400 `bad_path`, 400
   * `bad_header`.
   */
  get basin(): string {
    this.#basin ??=
      'basin' in this.#match.parameters
        ? this.pathParameter('basin', basinNameProblem)
        : addressedBasin(this, this.settings)
    return this.#basin
  }

  /** The stream in the path. Throws 400 `bad_path`. */
  get stream(): string {
    this.#stream ??= this.pathParameter('stream', streamNameProblem)
    return this.#stream
  }

  /** The id of the access token in the path. Throws 400 `bad_path`. */
  get tokenId(): string {
    return this.pathParameter('id', accessTokenIdProblem)
  }

  /**
   * @internal The resource that the address of the request names. Invalid names are omitted, because their
   * errors come after the permission check.
   */
  get resource(): Resource {
    const { pattern, parameters: names } = this.#match
    const isInBasin = 'basin' in names || 'stream' in names || pattern.startsWith('/v1/streams')
    return {
      basin: isInBasin ? this.#nameUnlessInvalid('basin') : undefined,
      stream: 'stream' in names ? this.#nameUnlessInvalid('stream') : undefined,
      tokenId: 'id' in names ? this.#nameUnlessInvalid('tokenId') : undefined,
    }
  }

  #nameUnlessInvalid(name: keyof Resource): string | undefined {
    try {
      return this[name]
    } catch {
      return undefined
    }
  }

  /** Decodes one segment of the path: percent-encoded UTF-8. Throws 400 `bad_path`. */
  pathParameter(parameter: 'basin' | 'stream' | 'id', problemOf: NameProblem): string {
    const segment = this.#match.parameters[parameter]!
    const name = segment.includes('%') ? decodedSegment(segment) : segment
    const problem = name === undefined ? 'not percent-encoded UTF-8' : problemOf(name)
    if (name === undefined || problem !== undefined) {
      throw new HeadwaterError('bad_path', `Invalid \`${parameter}\` in the path: ${problem}`, {
        field: parameter,
      })
    }
    return name
  }

  /** The prefix of headers in the response: the one that the request used, or else the neutral one. */
  get headerPrefix(): HeaderPrefix {
    this.#headerPrefix ??= usedHeaderPrefix(this.exchange) ?? 'svc'
    return this.#headerPrefix
  }

  /**
   * How reads over HTTP differ from those in process. Clients that themselves use the prefix `s2` rely on
   * empty sessions at the tail.
   */
  get readPolicy(): { readonly includesTrimmed: true; readonly allowsEmpty: 'session' | false } {
    return { includesTrimmed: true, allowsEmpty: this.headerPrefix === 's2' ? 'session' : false }
  }

  /**
   * Returns the value of a protocol header. Throws 400 `bad_header` if it is not UTF-8 or two prefixes have
   * different values.
   */
  vendorHeader(header: VendorHeader): string | undefined {
    const value = vendorHeader(this.exchange, header)
    if (value === undefined || !/[\x80-\xff]/.test(value)) return value
    const text = textOf(Uint8Array.from(value, (character) => character.charCodeAt(0)))
    if (text === undefined) throw invalidHeader(this.vendorHeaderName(header), 'not UTF-8')
    return text
  }

  /** How JSON encodes the bytes of records. Throws 400 `bad_header`. */
  get dataFormat(): DataFormat {
    const value = this.vendorHeader('format')
    return value === undefined ? 'raw' : parseDataFormat(value, this.vendorHeaderName('format'))
  }

  /** Returns the name of a protocol header with the prefix of this request. */
  vendorHeaderName(header: VendorHeader): string {
    return vendorHeaderName(this.headerPrefix, header)
  }

  /**
   * Returns the response header that tells what a creation did: with the prefix that the request used, or
   * else with both, because published clients use none in account requests and still expect their own.
   */
  provisionHeaders(result: string): Record<string, string> {
    const used = usedHeaderPrefix(this.exchange)
    const prefixes = used === undefined ? HEADER_PREFIXES : [used]
    return Object.fromEntries(
      prefixes.map((prefix) => [vendorHeaderName(prefix, 'provision-result'), result]),
    )
  }

  /** The request token: any text, including `''`. Throws 400 `bad_header` if it is too long. */
  get requestToken(): string | undefined {
    const token = this.vendorHeader('request-token')
    const problem = token === undefined ? undefined : requestTokenProblem(token)
    if (problem !== undefined) throw invalidHeader(this.vendorHeaderName('request-token'), problem)
    return token
  }

  /**
   * @internal Returns the stream in the path. An append or a session creates it if the configuration of its
   * basin allows that, with the configuration in the header `svc-stream-config`. Throws 400 `bad_path`, 400
   * `bad_header`, 422 `invalid`.
   *
   * @param takesKey Whether the request has the encryption key of the records.
   */
  streamOf(hw: Engine, takesKey = true, identity?: Parameters<Engine['streamOf']>[2]): EngineStream {
    const { basin, stream } = this
    const encryptionKey = takesKey ? this.encryptionKey : undefined
    const header = this.vendorHeader('stream-config')
    const config = header === undefined ? undefined : decodeStreamConfigHeader(header)
    return hw.streamOf({ basin, stream }, { config, encryptionKey }, identity)
  }

  /**
   * @internal Returns the stream in the path, as {@link streamOf} does: the one that the header
   * `headwater-stream-id` names, if there is one. The reply states the identity of the stream that is used.
   */
  identifiedStreamOf(hw: Engine, { takesKey = true } = {}): EngineStream {
    const onResolved = (id: string) => {
      this.streamId = id
    }
    return this.streamOf(hw, takesKey, { id: this.exchange.header(STREAM_ID_HEADER), onResolved })
  }

  /** Reports an error whose details the client does not see. */
  report(error: unknown): void {
    if (!HeadwaterError.is(error) || error.status === 500) this.settings.onError(error, this.exchange)
  }

  /**
   * The encryption key, not decoded. Throws 400 `bad_header` if it is empty or too long, even for streams
   * without a cipher.
   */
  get encryptionKey(): string | undefined {
    const key = this.vendorHeader('encryption-key')?.trim()
    if (key === undefined || (key.length >= 1 && key.length <= KEY_CHARACTERS_MAX)) return key
    const name = this.vendorHeaderName('encryption-key')
    throw invalidHeader(name, `key material length ${key.length} is out of range`)
  }
}

/** Returns the basin named by the subdomain, by the header, or by the options. */
function addressedBasin(request: ApiRequest, { basinDomains, basin: defaultBasin }: HandlerSettings): string {
  const byHost = subdomain(request.exchange.hostname, basinDomains)
  const byHeader = request.vendorHeader('basin')
  const basin = byHeader ?? byHost ?? defaultBasin
  if (basin === undefined) {
    const name = request.vendorHeaderName('basin')
    throw new HeadwaterError('bad_header', `Missing header \`${name}\``, { field: name })
  }
  const hostProblem = byHost === undefined ? undefined : basinNameProblem(byHost)
  if (hostProblem !== undefined) throw invalidHeader('host', hostProblem)
  const isOther = byHost !== undefined && byHost !== basin
  const problem = isOther ? `the host is that of basin \`${byHost}\`` : basinNameProblem(basin)
  if (problem !== undefined) throw invalidHeader(request.vendorHeaderName('basin'), problem)
  return basin
}

/** Returns the one label in front of one of the domains. */
function subdomain(hostname: string, domains: readonly string[]): string | undefined {
  const host = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname
  for (const domain of domains) {
    if (!host.endsWith(`.${domain}`)) continue
    const label = host.slice(0, -domain.length - 1)
    if (!label.includes('.')) return label
  }
  return undefined
}

/** Decodes a part of a path; undefined if it is not percent-encoded UTF-8. */
export function decodedSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function invalidHeader(name: string, problem: string): HeadwaterError {
  return new HeadwaterError('bad_header', `Invalid header \`${name}\`: ${problem}`, { field: name })
}
