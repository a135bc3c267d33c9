import { expect, test } from 'vitest'
import { block, NOW } from '../../../../adapters/conformance/log-writer.ts'
import type { Change } from '../../../../adapters/storage/filesystem/state/change.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import type { Collection, Head, JsonValue } from '../../../../src/storage/contract.ts'
import { deadlineKey, streamKey } from '../../../../src/storage/documents.ts'
import { appendOf, CREATED, freed, journalDisk } from '../crafted-disk.ts'

const BASIN = { name: 'my-app', createdAt: NOW, deletedAt: null, config: {} }
const STREAM = { basin: 'my-app', name: 's', logId: 'a', createdAt: NOW, config: {}, cipher: null, epoch: 1 }
const TOKEN = { id: 'ci', digest: 'a'.repeat(64) }
const DEADLINE = { basin: 'my-app', stream: 's', logId: 'gone' }
const KEY = streamKey('my-app', 's')
const SOUND: readonly Put[] = [
  ['basins', 'my-app', BASIN],
  ['streams', KEY, STREAM],
  ['tokens', 'ci', TOKEN],
  ['deadlines', deadlineKey(NOW, { logId: 'gone' }), DEADLINE],
  ['settings', 'of a later version', [1]],
  ['usage', 'of a later version', null],
]

type Put = readonly [collection: Collection, key: string, value: JsonValue]

test('documents that agree are sound', async () => {
  expect(await verifyFiles(await diskWith(SOUND))).toMatchObject({ problems: [], notes: [], documents: 6 })
})

test.each<[string, Put, string]>([
  [
    'a basin of another name',
    ['basins', 'other', BASIN],
    'the key of a basin document does not match its name',
  ],
  ['a basin of no name', ['basins', 'A B', { ...BASIN, name: 'A B' }], 'a basin has an invalid name'],
  [
    'a basin without a time',
    ['basins', 'my-app', { ...BASIN, createdAt: 'x' }],
    'a basin has no creation time',
  ],
  ['a basin that is nothing', ['basins', 'my-app', null], 'a document of basins has an unexpected shape'],
  [
    'a stream of another name',
    ['streams', KEY, { ...STREAM, name: 't' }],
    'the key of a stream document does not match its name',
  ],
  ['a stream without its log', ['streams', KEY, { ...STREAM, logId: 'b' }], 'the log of a stream is missing'],
  [
    'a stream without configuration',
    ['streams', KEY, { ...STREAM, config: null }],
    'a stream has no configuration',
  ],
  [
    'a stream of another epoch',
    ['streams', KEY, { ...STREAM, epoch: 2 }],
    'a stream has epoch 2, but its log has epoch 1',
  ],
  [
    'a stream with another cipher than its blocks',
    ['streams', KEY, { ...STREAM, cipher: 'aegis-256' }],
    'a stream is aegis-256, but its blocks are plain',
  ],
  [
    'a stream without its basin',
    ['streams', streamKey('none', 's'), { ...STREAM, basin: 'none', logId: 'b' }],
    'the basin of a stream is missing',
  ],
  [
    'two streams with one log',
    ['streams', streamKey('my-app', 't'), { ...STREAM, name: 't' }],
    'two streams share a log',
  ],
  ['a token of another name', ['tokens', 'cd', TOKEN], 'the key of a token document does not match its id'],
  ['a token without a digest', ['tokens', 'ci', { ...TOKEN, digest: '' }], 'a token has no valid digest'],
  [
    'a deadline of another log',
    ['deadlines', deadlineKey(NOW, { logId: 'x' }), DEADLINE],
    'the key of a deadline does not match its log',
  ],
])('%s is a problem', async (_, put, problem) => {
  const { problems } = await verifyFiles(await diskWith([...SOUND, put]))
  expect(problems).toMatchObject([{ file: 'journal-0000000001', problem }])
})

test('a problem of a log names its stream', async () => {
  const put = appendOf(block({ firstSeqNum: 9 }))
  const { problems } = await verifyFiles(await diskWith(SOUND, [put]))
  expect(problems).toMatchObject([{ log: 'a', stream: { basin: 'my-app', name: 's' } }])
})

test('reports a log without a stream as a note', async () => {
  const report = await verifyFiles(await diskWith([]))
  expect(report).toMatchObject({
    problems: [],
    notes: [{ note: 'no stream refers to this log', log: 'a' }],
  })
})

test.each<[string, Put, Partial<Head>, number | undefined]>([
  ['for ever', ['streams', KEY, { ...STREAM, config: { retentionPolicy: 'infinite' } }], {}, 3],
  [
    'for ever, and was trimmed',
    ['streams', KEY, { ...STREAM, config: { retentionPolicy: 'infinite' } }],
    { trimPoint: 3 },
    undefined,
  ],
  [
    'for a day',
    ['streams', KEY, { ...STREAM, config: { retentionPolicy: { ageSeconds: 86_400 } } }],
    {},
    undefined,
  ],
])('notes missing oldest records of a stream that keeps them %s', async (_, stream, changed, count) => {
  const expiring = { ...block({ firstSeqNum: 0, count: 3 }), expiresAt: NOW }
  const disk = await journalDisk([
    CREATED,
    appendOf(expiring, changed),
    freed(0, 3, 1, expiring.meteredBytes),
    ...putsOf([['basins', 'my-app', BASIN], stream]),
  ])
  const note = expect.stringContaining(`the ${count} oldest records are missing`)
  expect(await verifyFiles(disk)).toMatchObject({
    problems: [],
    notes: count === undefined ? [] : [{ file: 'journal-0000000001', note, log: 'a' }],
  })
})

async function diskWith(puts: readonly Put[], others: readonly Change[] = []) {
  return journalDisk([CREATED, appendOf(block({ firstSeqNum: 0 })), ...putsOf(puts), ...others])
}

function putsOf(puts: readonly Put[]): Change[] {
  return puts.map(([collection, key, value], i) => {
    return { kind: 'put', collection, key, version: i + 1, text: JSON.stringify(value) }
  })
}
