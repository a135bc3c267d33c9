import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
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

interface Media {
  readonly schema: Json
}

interface DocumentedResponse {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Json }>>
  readonly content?: Readonly<Record<string, Media>>
}

interface Reference {
  readonly $ref: string
}

interface DocumentedOperation {
  readonly operationId: string
  readonly security?: readonly []
  readonly parameters?: readonly (Parameter | Reference)[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, DocumentedResponse | Reference>>
}

type PathItem = Partial<Record<(typeof METHODS)[number], DocumentedOperation>> & {
  readonly parameters?: readonly (Parameter | Reference)[]
}

/** The parts of docs/openapi.yaml that the tests use. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, PathItem>>
  readonly components: Readonly<Record<string, Readonly<Record<string, Json>>>>
}

export const document: OpenApiDocument = parse(readFileSync(PATH, 'utf8'))

/** An operation with the place where the document has it. */
export interface LocatedOperation {
  readonly path: string
  readonly method: (typeof METHODS)[number]
  readonly operation: DocumentedOperation
}

export const operations: readonly LocatedOperation[] = Object.entries(document.paths).flatMap(
  ([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method]
      return operation === undefined ? [] : [{ path, method, operation }]
    }),
)

const pointerTo = (...names: readonly string[]) =>
  `#/${names.map((name) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`

/** The value that a reference of the document leads to, and where it is. */
function resolved<Value>(value: Value | Reference, pointer: string): { value: Value; pointer: string } {
  if (typeof value !== 'object' || value === null || !('$ref' in value)) {
    return { value: value as Value, pointer }
  }
  const [, , kind, name] = value.$ref.split('/')
  return { value: document.components[kind!]![name!] as unknown as Value, pointer: value.$ref }
}

/** Members that the document does not list are errors in the tests, although clients must ignore them. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const members = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]))
  const isObject = members.type === 'object' && members.properties !== undefined
  return isObject ? { ...members, additionalProperties: false } : members
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(closed(document as unknown as Json) as object, 'openapi')
const validators = new Map<string, ValidateFunction>()

/** Returns what is wrong with a value, or undefined. */
function problemOf(value: unknown, pointer: string): string | undefined {
  let validate = validators.get(pointer)
  if (validate === undefined) {
    validate = ajv.compile({ $ref: `openapi${pointer}` })
    validators.set(pointer, validate)
  }
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
        const types = method === 'head' ? [] : Object.keys(resolved(response, '').value.content ?? {})
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
    const place = pointerTo('paths', path, method, 'responses', status)
    const { value: response, pointer } = resolved(documented, place)
    yield* headerProblems(exchange, response, pointer)
    const type = mediaTypeOf(exchange.headers)
    if (method === 'head') {
      if (exchange.body.length > 0) yield 'a body'
      this.#seen.add(keyOf(method, path, status, ''))
      return
    }
    if (response.content === undefined) {
      if (exchange.body.length > 0) yield 'a body that is not documented'
      this.#seen.add(keyOf(method, path, status, ''))
      return
    }
    const listed = type in response.content ? type : '*/*'
    if (response.content[listed] === undefined) {
      yield `the media type ${type || '(none)'} is not documented`
      return
    }
    this.#seen.add(keyOf(method, path, status, listed))
    const schema = `${pointer}${pointerTo('content', listed, 'schema').slice(1)}`
    for (const value of jsonIn(exchange, type)) {
      const problem = listed === '*/*' ? undefined : problemOf(value, schema)
      if (problem !== undefined) yield `${problem} in ${JSON.stringify(value)}`
    }
    for (const batch of batchesIn(exchange, type)) {
      const problem = problemOf(batch, '#/components/schemas/ReadBatch')
      if (problem !== undefined) yield `${problem} in an event`
    }
  }
}

function keyOf(method: string, path: string, status: string, type: string): string {
  return `${method} ${path} ${status} ${type}`.trimEnd()
}

/** Whether a path is described by a template. Only that of the second protocol stands for slashes too. */
function isOf(path: string, template: string): boolean {
  const pattern = template.replaceAll('{path}', '.+').replaceAll(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${pattern}$`).test(path) && !operationsOf(path, template)
}

/** A path without parameters takes precedence, as `/v1/locations/default` does. */
function operationsOf(path: string, template: string): boolean {
  return template !== path && path in document.paths
}

function mediaTypeOf(headers: Headers): string {
  return headers.get('content-type')?.split(';')[0]?.trim() ?? ''
}

function* headerProblems({ headers }: Exchange, response: DocumentedResponse, pointer: string) {
  const documented = response.headers ?? {}
  for (const [name, { required = false }] of Object.entries(documented)) {
    const value = headers.get(name)
    if (value === null) {
      if (required) yield `no header ${name}`
      continue
    }
    const problem = problemOf(value, `${pointer}${pointerTo('headers', name, 'schema').slice(1)}`)
    if (problem !== undefined) yield `${name}: ${problem}`
  }
  for (const name of headers.keys()) {
    if (PROTOCOL_HEADER.test(name) && !(name in documented)) yield `the header ${name} is not documented`
  }
}

function jsonIn({ body }: Exchange, type: string): unknown[] {
  return type === 'application/json' ? [JSON.parse(new TextDecoder().decode(body))] : []
}

function batchesIn({ body, url }: Exchange, type: string): unknown[] {
  if (type !== 'text/event-stream' || !url.includes('/records')) return []
  const events = new TextDecoder().decode(body).matchAll(/^event: batch\n(?:id: .*\n)?data: (.*)$/gm)
  return [...events].map(([, data]) => JSON.parse(data!))
}

/** What a request that succeeded has beyond the document. */
function* requestProblems(exchange: Exchange, { path, method, operation }: LocatedOperation) {
  const parameters = [...(document.paths[path]!.parameters ?? []), ...(operation.parameters ?? [])].map(
    (parameter) => resolved<Parameter>(parameter, '').value,
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
    const schema = pointerTo('paths', path, method, 'requestBody', 'content', type, 'schema')
    const problem = problemOf(JSON.parse(exchange.requestBody), schema)
    if (problem !== undefined) yield `request: ${problem} in ${exchange.requestBody}`
  }
}
