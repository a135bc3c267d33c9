import { expect, test } from 'vitest'
import { LogWriter, NOW } from '../../../../adapters/conformance/log-writer.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { Collection, JsonValue } from '../../../../src/storage/contract.ts'
import { deadlineKey, streamKey } from '../../../../src/storage/documents.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const BASIN = { name: 'my-app', createdAt: NOW, deletedAt: null, config: {} }
const STREAM = { basin: 'my-app', name: 's', logId: 'a', createdAt: NOW, config: {}, cipher: null, epoch: 1 }
const TOKEN = { id: 'ci', digest: 'a'.repeat(64) }
const DEADLINE = { kind: 'empty', basin: 'my-app', stream: 's', logId: 'gone' }
const KEY = streamKey('my-app', 's')
const SOUND: readonly Put[] = [
  ['basins', 'my-app', BASIN],
  ['streams', KEY, STREAM],
  ['tokens', 'ci', TOKEN],
  ['deadlines', deadlineKey(NOW, { logId: 'gone', kind: 'empty' }), DEADLINE],
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
    ['deadlines', deadlineKey(NOW, { logId: 'x', kind: 'empty' }), DEADLINE],
    'the key of a deadline does not match its log',
  ],
])('%s is a problem', async (_, put, problem) => {
  const { problems } = await verifyFiles(await diskWith([...SOUND, put]))
  expect(problems).toMatchObject([{ file: 'journal-0000000001', problem }])
})

test('reports a log without a stream as a note', async () => {
  const report = await verifyFiles(await diskWith([]))
  expect(report).toMatchObject({
    problems: [],
    notes: [{ note: 'no stream refers to this log', log: 'a' }],
  })
})

/** A directory with a log of one record, and documents that an engine could have written. */
async function diskWith(puts: readonly Put[]): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, 1e9)
  await (await LogWriter.create(session, 'a')).append()
  for (const [collection, key, value] of puts) await session.commit([{ kind: 'put', collection, key, value }])
  await session.close()
  return disk
}
