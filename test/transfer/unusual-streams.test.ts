import { expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import { contentOf, exported, imported, type Kind, openEndpoint } from './support.ts'

const NAMES = [
  '%2e%2e',
  '%',
  '__proto__',
  '\u0001',
  ' ',
  'a b',
  '\u{1f600}',
  '\uffff',
  '#?',
  '\ufeffx',
  '...',
  'a\\b',
  'a/../b',
  '//',
  '+',
  '\n',
]
it.each<Kind>(['server', 'directory'])(
  'unusual names, times at their limits and binary data are imported into a %s unchanged',
  { tags: ['slow'] },
  async (kind) => {
    const source = await openEndpoint()
    await source.hw.createBasin('basin-a', {
      defaultStreamConfig: { retentionPolicy: 'infinite', timestamping: { uncapped: true } },
    })
    const basin = source.hw.basin('basin-a')
    for (const name of NAMES) {
      await basin.createStream(name)
      await basin.stream(name).append([
        { body: '\ufeffbom', timestamp: 0 },
        { body: '', timestamp: 0 },
        {
          body: Uint8Array.of(0xef, 0xbb),
          headers: [
            ['a', Uint8Array.of(0xff)],
            ['__proto__', ''],
          ],
          timestamp: Number.MAX_SAFE_INTEGER,
        },
        {
          body: '\u2028\u0000\r\n',
          headers: Array.from({ length: 5 }, (_, i) => [`h${i}`, ''] as const),
          timestamp: Number.MAX_SAFE_INTEGER,
        },
      ])
    }
    const text = await exported(source.service)
    const target = await openEndpoint({ kind })
    await imported(target.service, text)
    expect(contentOf(await exported(target.service))).toBe(contentOf(text))
  },
)

it('a token with auto-prefix exports and imports names without the prefix', async () => {
  const { hw, with: withOptions } = await openEndpoint()
  await hw.createBasin('basin-a')
  const basin = hw.basin('basin-a')
  for (const name of ['u1/a', 'u1/b', 'u2/a']) {
    await basin.createStream(name)
    await basin.stream(name).append([name, fenceRecord('t'), trimRecord(1)])
  }
  const all = { read: true, write: true }
  const token = await hw.issueAccessToken({
    id: 'of-u1',
    scope: {
      basins: { prefix: '' },
      streams: { prefix: 'u1/' },
      opGroups: { account: all, basin: all, stream: all },
    },
    autoPrefixStreams: true,
  })
  const service = withOptions({ fetch: createHandler(hw), token })
  const text = await exported(service)
  expect([...text.matchAll(/"stream":"([^"]*)"/g)].map(([, name]) => name)).toEqual(['a', 'b'])
  for (const name of ['u1/a', 'u1/b']) await basin.stream(name).delete()
  await imported(service, text)
  expect(contentOf(await exported(service))).toBe(contentOf(text))
})
