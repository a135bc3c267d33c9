import { describe, expect, it } from 'vitest'
import { planCommit, serializeChanges } from '../../src/storage/commit-plan.ts'
import type { CatalogChange } from '../../src/storage/contract.ts'
import { StorageConflict } from '../../src/storage/errors.ts'
import { emptyHead } from '../../src/storage/heads.ts'

const HEAD = emptyHead(1, 1000)

/** Plans on a storage with the document `streams/old` of version 5, the log `log`, and remains of `gone`. */
function plan(changes: readonly CatalogChange[]) {
  let version = 10
  return planCommit(
    serializeChanges(changes),
    {
      versionOf: (collection, key) => (collection === 'streams' && key === 'old' ? 5 : undefined),
      nextVersion: () => ++version,
    },
    { headOf: (logId) => (logId === 'log' ? HEAD : undefined) },
  )
}

const put = (key: string, value: number, expect?: number | null): CatalogChange => ({
  kind: 'put',
  collection: 'streams',
  key,
  value,
  ...(expect !== undefined && { expect }),
})
const remove = (key: string, expect?: number): CatalogChange => ({
  kind: 'delete',
  collection: 'streams',
  key,
  ...(expect !== undefined && { expect }),
})
const check = (key: string, expect: number): CatalogChange => ({
  kind: 'check',
  collection: 'streams',
  key,
  expect,
})
const create = (logId: string): CatalogChange => ({ kind: 'create-log', logId, epoch: 3, createdAt: 7 })
const setEpoch = (logId: string): CatalogChange => ({ kind: 'set-epoch', logId, epoch: 9 })
const deleteLog = (logId: string, expectSeqNum?: number): CatalogChange => ({
  kind: 'delete-log',
  logId,
  ...(expectSeqNum !== undefined && { expectSeqNum }),
})
const document = (key: string, text: string | undefined, version = 11) => ({
  collection: 'streams',
  key,
  content: text === undefined ? undefined : { text, version },
})

describe('a commit', () => {
  it.each<[string, CatalogChange[], unknown[]]>([
    ['creates a document', [put('new', 1, null)], [document('new', '1')]],
    ['replaces a document', [put('old', 1, 5)], [document('old', '1')]],
    ['deletes a document', [remove('old', 5)], [document('old', undefined)]],
    ['writes nothing for a check', [check('old', 5)], []],
    ['writes nothing for the deletion of a missing document', [remove('new')], []],
    ['writes a document once', [put('new', 1), put('new', 2)], [document('new', '2', 12)]],
    [
      'sees the version that an earlier change gave',
      [put('old', 1), put('old', 2, 11)],
      [document('old', '2', 12)],
    ],
    ['sees what an earlier change deleted', [remove('old'), put('old', 1, null)], [document('old', '1')]],
    [
      'deletes what an earlier change created',
      [put('new', 1), remove('new', 11)],
      [document('new', undefined)],
    ],
  ])('%s', (_, changes, documents) => {
    expect(plan(changes)).toEqual({ documents, logs: [] })
  })

  it.each<[string, CatalogChange[], unknown[]]>([
    ['creates a log', [create('new')], [{ logId: 'new', head: emptyHead(3, 7), isNew: true }]],
    [
      'replaces the epoch of a log',
      [setEpoch('log')],
      [{ logId: 'log', head: { ...HEAD, epoch: 9 }, isNew: false }],
    ],
    ['deletes a log', [deleteLog('log', 0)], [{ logId: 'log', head: undefined, isNew: false }]],
    ['writes nothing for the deletion of a missing log', [deleteLog('new', 4)], []],
    [
      'creates a log with the last epoch',
      [create('new'), setEpoch('new')],
      [{ logId: 'new', head: { ...emptyHead(3, 7), epoch: 9 }, isNew: true }],
    ],
    ['writes nothing for a log that it creates and deletes', [create('new'), deleteLog('new')], []],
    [
      'deletes a log whose epoch it has set',
      [setEpoch('log'), deleteLog('log')],
      [{ logId: 'log', head: undefined, isNew: false }],
    ],
  ])('%s', (_, changes, logs) => {
    expect(plan(changes)).toEqual({ documents: [], logs })
  })

  it.each<[string, CatalogChange[]]>([
    ['a document that should not exist', [put('old', 1, null)]],
    ['a document of another version', [put('old', 1, 4)]],
    ['a missing document', [remove('new', 4)]],
    ['a check', [check('old', 4)]],
    ['a version that an earlier change replaced', [put('old', 1), check('old', 5)]],
    ['a log that exists', [create('log')]],
    ['a log that an earlier change created', [create('new'), create('new')]],
    ['a log that an earlier change deleted', [deleteLog('log'), create('log')]],
    ['the epoch of a missing log', [setEpoch('new')]],
    ['the epoch of a log that an earlier change deleted', [deleteLog('log'), setEpoch('log')]],
    ['a log with another tail', [deleteLog('log', 1)]],
  ])('conflicts on %s', (_, changes) => {
    expect(() => plan([put('first', 1), ...changes])).toThrow(StorageConflict)
  })

  it('starts a log where it is asked to', () => {
    const start = { tail: { seqNum: 3, timestamp: 4 }, fencingToken: 'token' }
    const [log] = plan([{ kind: 'create-log', logId: 'new', epoch: 3, createdAt: 7, start }]).logs
    expect(log?.head).toEqual(emptyHead(3, 7, start))
  })
})

it('a serialized change does not follow a value that its caller modifies', () => {
  const value = { list: [1] }
  const [change] = serializeChanges([{ kind: 'put', collection: 'streams', key: 'a', value }])
  value.list.push(2)
  expect(change).toEqual({ kind: 'put', collection: 'streams', key: 'a', text: '{"list":[1]}' })
})
