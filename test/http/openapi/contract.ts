import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { parse } from 'yaml'

const PATH = join(import.meta.dirname, '..', '..', '..', 'docs', 'openapi.yaml')
const METHODS = ['get', 'head', 'put', 'post', 'patch', 'delete'] as const

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
}

interface Schema {
  readonly schema: object
}

interface DocumentedResponse {
  readonly headers?: Readonly<Record<string, Schema & { readonly required?: boolean }>>
  readonly content?: Readonly<Record<string, Schema>>
}

interface Reference {
  readonly $ref: string
}

interface DocumentedOperation {
  readonly operationId: string
  readonly security?: readonly []
  readonly parameters?: readonly (Parameter | Reference)[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Schema>> }
  readonly responses: Readonly<Record<string, DocumentedResponse | Reference>>
}

type PathItem = Partial<Record<(typeof METHODS)[number], DocumentedOperation>> & {
  readonly parameters?: readonly (Parameter | Reference)[]
}

/** The parts of docs/openapi.yaml that the tests use. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, PathItem>>
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>
}

export const document: OpenApiDocument = parse(readFileSync(PATH, 'utf8'))

/**
 * Adds to a document that members which it does not list are errors, although clients must ignore them. Its
 * references name it, so that each schema in it can be compiled.
 */
function closed(part: Json): Json {
  if (Array.isArray(part)) return part.map(closed)
  if (typeof part !== 'object' || part === null) return part
  const members = Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, name === '$ref' ? `openapi${value}` : closed(value)]),
  )
  const isObject = members.type === 'object' && members.properties !== undefined
  return isObject ? { ...members, additionalProperties: false } : members
}

const CLOSED = closed(document as unknown as Json) as unknown as OpenApiDocument

/** An operation with the place where the document has it. */
export interface LocatedOperation {
  readonly path: string
  readonly method: (typeof METHODS)[number]
  readonly operation: DocumentedOperation
}

export const operations: readonly LocatedOperation[] = Object.entries(CLOSED.paths).flatMap(([path, item]) =>
  METHODS.flatMap((method) => {
    const operation = item[method]
    return operation === undefined ? [] : [{ path, method, operation }]
  }),
)

/** The value that a reference of the document leads to. */
function resolved<Value extends object>(value: Value | Reference): Value {
  if (!('$ref' in value)) return value
  const [, , kind, name] = value.$ref.split('/')
  return CLOSED.components[kind!]![name!] as Value
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(CLOSED, 'openapi')

/** Returns what is wrong with a value, or undefined. */
function problemOf(value: unknown, schema: object): string | undefined {
  const validate = ajv.compile(schema)
  return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'body' })
}

/** The headers that belong to a protocol, unlike those of HTTP. */
const PROTOCOL_HEADER = /^(svc|s2|headwater|stream|producer)-/

/** A request as a test sends it, and the reply. */
export interface Exchange {
  readonly method: string
  readonly url: string
  readonly requestHeaders: Headers
  /** Undefined if it is not text. */
  readonly requestBody: string | undefined
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array
}

/** Compares exchanges with the document, and records what they have shown. */
export class Contract {
  readonly #seen = new Set<string>()

  /** Returns everything in which an exchange differs from the document. */
  check(exchange: Exchange): string[] {
    const { pathname } = new URL(exchange.url)
    const located = operations.find(
      ({ path, method }) => method === exchange.method.toLowerCase() && isOf(pathname, path),
    )
    const title = `${exchange.method} ${pathname} ${exchange.status}`
    if (located === undefined) return [`${title}: no operation`]
    const problems = [...this.#response(exchange, located)]
    if (exchange.status < 300) problems.push(...requestProblems(exchange, located))
    return problems.map((problem) => `${title}: ${problem}`)
  }

  /** The documented responses that no exchange has shown, for each of their media types. */
  unseen(): string[] {
    const documented = operations.flatMap(({ path, method, operation }) =>
      Object.entries(operation.responses).flatMap(([status, response]) => {
        const types = method === 'head' ? [] : Object.keys(resolved(response).content ?? {})
        return (types.length === 0 ? [''] : types).map((type) => keyOf(method, path, status, type))
      }),
    )
    return documented.filter((key) => !this.#seen.has(key))
  }

  *#response(exchange: Exchange, { path, method, operation }: LocatedOperation): Generator<string> {
    const status = String(exchange.status)
    const documented = operation.responses[status]
    if (documented === undefined) {
      yield `the status is not documented: ${new TextDecoder().decode(exchange.body)}`
      return
    }
    const response = resolved(documented)
    yield* headerProblems(exchange, response)
    const type = mediaTypeOf(exchange.headers)
    if (method === 'head' || response.content === undefined) {
      if (exchange.body.length > 0) yield 'a body that is not documented'
      this.#seen.add(keyOf(method, path, status, ''))
      return
    }
    const listed = type in response.content ? type : '*/*'
    const media = response.content[listed]
    if (media === undefined) {
      yield `the media type ${type || '(none)'} is not documented`
      return
    }
    this.#seen.add(keyOf(method, path, status, listed))
    if (listed === 'application/json') {
      const value = JSON.parse(new TextDecoder().decode(exchange.body))
      const problem = problemOf(value, media.schema)
      if (problem !== undefined) yield `${problem} in ${JSON.stringify(value)}`
    }
    for (const batch of batchesIn(exchange, type)) {
      const problem = problemOf(batch, CLOSED.components.schemas!.ReadBatch!)
      if (problem !== undefined) yield `${problem} in an event`
    }
  }
}

function keyOf(method: string, path: string, status: string, type: string): string {
  return `${method} ${path} ${status} ${type}`.trimEnd()
}

/**
 * Whether a path is described by a template. Only that of the second protocol stands for slashes too. A path
 * without parameters takes precedence, as `/v1/locations/default` does.
 */
function isOf(path: string, template: string): boolean {
  if (path in document.paths) return template === path
  const pattern = template.replaceAll('{path}', '.+').replaceAll(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${pattern}$`).test(path)
}

function mediaTypeOf(headers: Headers): string {
  return headers.get('content-type')?.split(';')[0]?.trim() ?? ''
}

function* headerProblems({ headers }: Exchange, { headers: documented = {} }: DocumentedResponse) {
  for (const [name, { required = false, schema }] of Object.entries(documented)) {
    const value = headers.get(name)
    const problem = value === null ? undefined : problemOf(value, schema)
    if (value === null && required) yield `no header ${name}`
    if (problem !== undefined) yield `${name}: ${problem}`
  }
  for (const name of headers.keys()) {
    if (PROTOCOL_HEADER.test(name) && !(name in documented)) yield `the header ${name} is not documented`
  }
}

function batchesIn({ body, url }: Exchange, type: string): unknown[] {
  if (type !== 'text/event-stream' || !url.includes('/records')) return []
  const events = new TextDecoder().decode(body).matchAll(/^event: batch\n(?:id: .*\n)?data: (.*)$/gm)
  return [...events].map(([, data]) => JSON.parse(data!))
}

/** What a request that succeeded has beyond the document. */
function* requestProblems(exchange: Exchange, { path, operation }: LocatedOperation) {
  const parameters = [...(CLOSED.paths[path]!.parameters ?? []), ...(operation.parameters ?? [])].map(
    (parameter) => resolved<Parameter>(parameter),
  )
  const names = (where: Parameter['in']) =>
    parameters.filter((one) => one.in === where).map(({ name }) => name)
  const query = new URL(exchange.url).searchParams
  for (const name of query.keys()) {
    if (!names('query').includes(name)) yield `the parameter ${name} is not documented`
  }
  for (const name of exchange.requestHeaders.keys()) {
    if (PROTOCOL_HEADER.test(name) && !names('header').includes(name.replace(/^s2-/, 'svc-'))) {
      yield `the request header ${name} is not documented`
    }
  }
  const given = { path: () => true, query: query.has.bind(query) }
  for (const { name, in: where, required = false } of parameters) {
    const isGiven = where === 'header' ? exchange.requestHeaders.has(name) : given[where](name)
    if (required && !isGiven) yield `${name} is documented as required`
  }
  if (exchange.requestBody === undefined || exchange.requestBody === '') {
    if (operation.requestBody?.required && mediaTypeOf(exchange.requestHeaders) === 'application/json') {
      yield 'a body is documented as required'
    }
    return
  }
  const type = mediaTypeOf(exchange.requestHeaders)
  const content = operation.requestBody?.content ?? {}
  if (!(type in content)) {
    if (!('*/*' in content)) yield `the media type ${type} of the request is not documented`
  } else if (type === 'application/json') {
    const problem = problemOf(JSON.parse(exchange.requestBody), content[type]!.schema)
    if (problem !== undefined) yield `request: ${problem} in ${exchange.requestBody}`
  }
}
