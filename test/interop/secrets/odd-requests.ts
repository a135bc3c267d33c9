/** A request with a secret in the wrong place. */
export interface MisplacedSecret {
  readonly what: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** The secret is interpreted as a name, which the response to a permitted caller repeats. */
  readonly isName: boolean
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** A secret in all places of requests where it may appear by mistake. */
export function misplacedSecrets(secret: string, basin: string, stream: string): MisplacedSecret[] {
  const inUrl = encodeURIComponent(secret)
  const inJson = JSON.stringify(secret)
  const target = `/v1/streams/${stream}/records`
  const basinHeader = { 'svc-basin': basin }
  const requests: MisplacedSecret[] = []
  const add = (method: string, path: string, more: Partial<MisplacedSecret> = {}) =>
    void requests.push({
      what: `${method} ${path} ${Object.keys(more.headers ?? {})} ${more.body ?? ''}`,
      method,
      path,
      isName: false,
      ...more,
      headers: { ...(path.startsWith('/v1/streams') && basinHeader), ...more.headers },
    })

  for (const path of [
    `/v1/basins/${inUrl}`,
    `/v1/streams/${inUrl}`,
    `/v1/streams/${inUrl}/records`,
    `/v1/streams/${inUrl}/records/tail`,
    `/v1/metrics/${inUrl}?set=storage&start=0&end=60`,
    `/v1/metrics/${basin}/${inUrl}?set=storage&start=0&end=60`,
  ]) {
    add('GET', path, { isName: true })
  }
  add('DELETE', `/v1/access-tokens/${inUrl}`, { isName: true })
  add('DELETE', `/v1/streams/${inUrl}`, { isName: true })
  add('GET', `/${inUrl}`)
  add('GET', `/v1/${inUrl}/streams`)
  add(secret.replace(/[^A-Za-z]/g, '').slice(0, 40), '/v1/basins')

  for (const name of ['access_token', 'token', 'key', 'limit', 'include_deleted', 'prefix', 'start_after']) {
    for (const path of ['/v1/basins', '/v1/streams', '/v1/access-tokens']) {
      add('GET', `${path}?${name}=${inUrl}`)
    }
  }
  for (const name of ['seq_num', 'timestamp', 'count', 'until', 'wait', 'clamp', 'key'])
    add('GET', `${target}?${name}=${inUrl}`)
  for (const query of [`set=${inUrl}&start=0&end=1`, `set=storage&start=${inUrl}&end=1&interval=${inUrl}`])
    add('GET', `/v1/metrics/${basin}?${query}`)
  add('GET', `${target}?seq_num=${inUrl}&seq_num=${inUrl}`)
  add('GET', `${target}?${inUrl}=1&${inUrl}=2`)

  for (const name of [
    'svc-basin',
    's2-basin',
    'svc-format',
    'svc-encryption-key',
    's2-encryption-key',
    'svc-stream-config',
    'accept',
    'content-type',
    'content-encoding',
    'last-event-id',
    'cookie',
  ]) {
    for (const method of ['GET', 'POST']) {
      const body = method === 'POST' ? { body: '{"records":[{"body":"","headers":[]},{"body":1}]}' } : {}
      add(method, `${target}${method === 'GET' ? '?seq_num=0' : ''}`, {
        ...body,
        headers: { ...JSON_TYPE, [name]: secret },
      })
    }
  }
  add('PUT', `/v1/basins/${basin}`, { headers: { 'svc-request-token': `${secret}${secret}` } })
  add('POST', target, { headers: { ...JSON_TYPE, 'svc-stream-config': `{"x":${inJson}}` }, body: '{}' })

  for (const body of [
    inJson,
    secret,
    `{${inJson}`,
    `{${inJson}:1,${inJson}:2}`,
    `{"records":[{"body":"x","timestamp":${inJson}}]}`,
    `{"records":[{"body":"x","headers":[["",${inJson}]]}]}`,
    `{"records":[{"body":"x"}],"match_seq_num":${inJson}}`,
    `{"records":[{"body":"x"}],"fencing_token":${inJson}}`,
    `{"config":{"stream_cipher":${inJson}}}`,
    `{"id":"x","scope":{"ops":[${inJson}]}}`,
    `{"id":"x","expires_at":${inJson},"scope":{"ops":["read"]}}`,
    `{"id":"x","scope":{"streams":{${inJson}:""}}}`,
  ]) {
    add('POST', target, { headers: JSON_TYPE, body })
    add('POST', target, { headers: { ...JSON_TYPE, 'svc-format': 'base64' }, body })
    add('PUT', `/v1/basins/${basin}`, { headers: JSON_TYPE, body: body.startsWith('{"rec') ? '{' : body })
    add('POST', '/v1/access-tokens', { headers: JSON_TYPE, body })
    add('PUT', '/v1/locations/default', { headers: JSON_TYPE, body, isName: body === inJson })
    add('PATCH', `/v1/streams/${stream}`, { headers: JSON_TYPE, body: body.startsWith('{"rec') ? '[' : body })
  }
  for (const contentType of ['application/protobuf', 'svcs/proto', 's2s/proto']) {
    add('POST', target, { headers: { 'content-type': contentType }, body: secret })
    add('POST', target, {
      headers: { 'content-type': contentType, 'content-encoding': 'gzip' },
      body: secret,
    })
  }
  return requests
}

/** Headers that carry a token in a wrong form. */
export function malformedAuthorizations(token: string): string[] {
  return [
    token,
    `Basic ${token}`,
    `Basic ${btoa(`user:${token}`)}`,
    `Bearer ${token} ${token}`,
    `Bearer ${token}x`,
    `Bearer ${token.slice(1)}`,
    `Bearer ${token.slice(0, -4)}`,
    `Bearer ${token.toLowerCase()}`,
    `Digest username="${token}", response="${token}"`,
  ]
}
