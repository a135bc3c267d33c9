/** What `fetch` of Node rejects with: clients tell by the code whether a request may have arrived. */
export function fetchFailed(code: 'ECONNREFUSED' | 'ECONNRESET', message: string): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) })
}

/** What the body of a response fails with when the connection breaks. */
export function terminated(message: string): TypeError {
  return new TypeError('terminated', { cause: Object.assign(new Error(message), { code: 'UND_ERR_SOCKET' }) })
}
