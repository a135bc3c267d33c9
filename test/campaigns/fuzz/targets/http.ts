import { equal } from '../harness/assertions.ts'
import { nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { checkExchange, loadCodecs } from '../http-answers.ts'
import { REQUEST_WORDS, requestsOf, someRequests } from '../http-requests.ts'
import { exchanges, ROOT_TOKEN } from '../http-service.ts'

/** The memory that an engine needs in addition. */
const MEMORY = { perInputByte: 20_000, beside: 32 * 1024 * 1024 }

/**
 * The handler in this process, on a new engine for each input. Every request must get a valid response and
 * leave nothing open.
 */
export const http = target({
  name: 'http',
  models: someRequests,
  async encode(requests) {
    await loadCodecs()
    return requests
  },
  decode: (input: string) => exchanges(requestsOf(input)),
  refuses: nothing,
  async verify(made) {
    for (const exchange of made) await checkExchange(exchange)
  },
  memory: MEMORY,
  words: REQUEST_WORDS,
  share: 8,
})

/** Paths that need no token. */
const PUBLIC = /^\/(health|ping)$/

/** The same without a valid token, whatever else is sent. */
export const httpGuarded = target({
  name: 'http-guarded',
  models: someRequests,
  encode: (requests) => requests.replaceAll('\n\n', '\nauthorization: Bearer none\n\n'),
  decode: (input: string) => exchanges(requestsOf(input.replaceAll(ROOT_TOKEN, 'none')), { guarded: true }),
  refuses: nothing,
  async verify(made) {
    for (const exchange of made) {
      await checkExchange(exchange)
      const { request, response } = exchange
      const { pathname } = new URL(request.path, 'http://localhost')
      // Unknown paths and methods may be disclosed.
      const isOpen =
        PUBLIC.test(pathname) || request.method === 'OPTIONS' || [404, 405].includes(response.status)
      if (!isOpen) equal(response.status, 401, `the answer to ${request.method} ${pathname}`)
    }
  },
  memory: MEMORY,
  words: [
    ...REQUEST_WORDS,
    '\nauthorization: Bearer ',
    '\nauthorization: Basic ',
    `\nauthorization: Bearer ${ROOT_TOKEN.slice(0, -1)}`,
    `\nauthorization: Bearer ${ROOT_TOKEN} ${ROOT_TOKEN}`.slice(0, -1),
  ],
  share: 4,
})
