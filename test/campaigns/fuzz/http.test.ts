import { beforeAll, expect } from 'vitest'
import { compress } from '../../../src/wire/compression.ts'
import { fuzzText } from './decoder.ts'
import { checkExchange } from './http-answers.ts'
import { REQUEST_WORDS, requestsOf, someRequests } from './http-requests.ts'
import { exchanges, ROOT_TOKEN } from './http-service.ts'

/** The memory that an engine needs in addition. */
const MEMORY = { perInputByte: 20_000, beside: 32 * 1024 * 1024 }

beforeAll(async () => {
  // Loads the codecs, which takes turns of the event loop that requests do not wait for.
  for (const algorithm of ['gzip', 'zstd'] as const) await compress(algorithm, new Uint8Array(1))
})

fuzzText('requests, also damaged ones,', {
  title: 'get valid responses and leave nothing open',
  models: someRequests,
  encode: (requests) => requests,
  decode: (input) => exchanges(requestsOf(input)),
  async verify(made) {
    for (const exchange of made) await checkExchange(exchange)
  },
  memory: MEMORY,
  isSlow: true,
  words: REQUEST_WORDS,
})

fuzzText('requests without a valid token, also damaged ones,', {
  title: 'get no other response than an error',
  models: someRequests,
  encode: (requests) => requests.replaceAll('\n\n', '\nauthorization: Bearer none\n\n'),
  decode: (input) => exchanges(requestsOf(input.replaceAll(ROOT_TOKEN, 'none')), 'token'),
  async verify(made) {
    for (const exchange of made) {
      await checkExchange(exchange)
      const { request, response } = exchange
      // Unknown paths and methods may be disclosed.
      const isPublic = /^\/(health|ping)$/.test(request.url.pathname) || request.method === 'OPTIONS'
      if (!isPublic && ![404, 405].includes(response.status)) expect(response.status).toBe(401)
    }
  },
  memory: MEMORY,
  isSlow: true,
  words: [
    ...REQUEST_WORDS,
    '\nauthorization: Bearer ',
    '\nauthorization: Basic ',
    `\nauthorization: Bearer ${ROOT_TOKEN.slice(0, -1)}`,
    `\nauthorization: Bearer ${ROOT_TOKEN} ${ROOT_TOKEN.slice(0, -1)}`,
  ],
})
