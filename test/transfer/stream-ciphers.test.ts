import { describe, expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { trimRecord } from '../../src/index.ts'
import { contentOf, type Endpoint, exported, imported, KEY, openEndpoint } from './support.ts'

const OTHER_KEY = Buffer.alloc(32, 8).toString('base64')

/** A plain stream in a basin whose new streams are encrypted. */
async function exportOfPlainStream(): Promise<string> {
  const { hw, service } = await openEndpoint()
  await hw.createBasin('basin-a')
  await hw.basin('basin-a').createStream('plain')
  await hw.basin('basin-a').stream('plain').append('x')
  await hw.basin('basin-a').reconfigure({ streamCipher: 'aes-256-gcm' })
  return exported(service)
}

/** Creates another stream whenever the import creates one. */
async function targetWithOtherStream(): Promise<Endpoint> {
  const target: Endpoint = await openEndpoint({
    wrapFetch: (fetch) => async (request) => {
      if (request.url.includes('/streams/plain'))
        await target.hw
          .basin('basin-a')
          .createStream('other')
          .catch(() => {})
      return fetch(request)
    },
  })
  await target.hw.createBasin('basin-a', { streamCipher: 'aes-256-gcm' })
  return target
}

const ciphersIn = async ({ hw }: Endpoint) =>
  Object.fromEntries(
    (await hw.basin('basin-a').listStreams()).items.map(({ name, cipher }) => [name, cipher]),
  )

describe('an import of streams whose cipher differs from that of their basin', () => {
  it('into a directory, does not change the cipher of other streams', async () => {
    const text = await exportOfPlainStream()
    const target = await openEndpoint({ kind: 'directory' })
    const basin = target.hw.basin('basin-a')
    await target.hw.createBasin('basin-a', { streamCipher: 'aes-256-gcm' })
    const names = Array.from({ length: 20 }, (_, i) => `other-${i}`)
    const createOthers = async () => {
      for (const name of names) await basin.createStream(name)
    }
    await Promise.all([imported(target.service, text), createOthers()])
    const others = names.map((name) => [name, 'aes-256-gcm'])
    expect(await ciphersIn(target)).toEqual({ plain: null, ...Object.fromEntries(others) })
  })

  it('into a service, turns off encryption of an existing basin only with --resume', async () => {
    const text = await exportOfPlainStream()
    const target = await targetWithOtherStream()
    await expect(imported(target.service, text)).rejects.toThrow(
      'stream plain of basin basin-a is not encrypted, but its basin is',
    )
    expect(target.requests.filter((request) => request.startsWith('PUT'))).toEqual([])
    await imported(target.service, text, { resume: true })
    expect(await ciphersIn(target)).toMatchObject({ plain: null })
    expect((await target.hw.basin('basin-a').config()).streamCipher).toBe('aes-256-gcm')
  })

  it('restores the cipher of the basin after a signal at any request', async () => {
    const text = await exportOfPlainStream()
    const counting = await openEndpoint()
    await imported(counting.service, text)
    for (let stopAt = 0; stopAt < counting.requests.length; stopAt++) {
      for (const afterRequest of [false, true]) {
        const control = new AbortController()
        let requestCount = 0
        const target = await openEndpoint({
          wrapFetch: (fetch) => async (request) => {
            const isLast = requestCount++ === stopAt
            if (isLast && !afterRequest) control.abort()
            const answer = await fetch(request)
            if (isLast) control.abort()
            return answer
          },
        })
        const service = target.with({ signal: control.signal })
        await imported(service, text).catch((error: unknown) =>
          expect(error).toMatchObject({ kind: 'aborted' }),
        )
        const config = await target.hw
          .basin('basin-a')
          .config()
          .catch(() => undefined)
        if (config !== undefined) expect(config.streamCipher, `request ${stopAt}`).toBe('aes-256-gcm')
      }
    }
  })
})

describe('an import into an encrypted stream that has records', () => {
  async function sealed(): Promise<string> {
    const { hw, service } = await openEndpoint()
    await hw.createBasin('basin-a', { streamCipher: 'aes-256-gcm' })
    await hw.basin('basin-a').createStream('s')
    await hw
      .basin('basin-a')
      .stream('s', { encryptionKey: KEY })
      .append(['x', trimRecord(0), 'y', 'z'])
    return exported(service)
  }
  const begun = async (text: string, seqNum: number) => {
    const target = await openEndpoint()
    await imported(target.service, text.slice(0, text.indexOf(`{"seq_num":${seqNum},`))).catch(() => {})
    return target
  }

  it.each([
    ['a record', 1],
    ['a command', 2],
  ])('that ends with %s requires its own key', async (_, seqNum) => {
    const text = await sealed()
    const target = await begun(text, seqNum)
    await expect(imported(target.with({ encryptionKey: OTHER_KEY }), text, { resume: true })).rejects.toThrow(
      'decryption_failed',
    )
    const stream = target.hw.basin('basin-a').stream('s', { encryptionKey: KEY })
    expect((await stream.checkTail()).seqNum).toBe(seqNum)
    await imported(target.service, text, { resume: true })
    expect(contentOf(await exported(target.service))).toBe(contentOf(text))
  })

  it('must end with the record of the export', async () => {
    const text = await sealed()
    const target = await begun(text.replace('"body":"x"', '"body":"another"'), 1)
    await expect(imported(target.service, text, { resume: true })).rejects.toThrow(
      'stream s of basin basin-a: its record 0 differs from the export',
    )
  })

  it('warns if the token does not permit a check of the key', async () => {
    const text = await sealed()
    const target = await begun(text, 1)
    const token = await target.hw.issueAccessToken({
      id: 'no-reader',
      scope: {
        basins: { prefix: '' },
        streams: { prefix: '' },
        opGroups: { account: { read: true, write: true }, basin: { read: true, write: true } },
        ops: ['append', 'trim', 'fence', 'check-tail'],
      },
    })
    const warnings: string[] = []
    const service = target.with({ token, fetch: createHandler(target.hw) })
    await imported(service, text, { resume: true, onWarning: (message) => warnings.push(message) })
    expect(warnings).toEqual([expect.stringContaining('the access token does not permit reads')])
    expect(contentOf(await exported(target.service))).toBe(contentOf(text))
  })
})
