import 'fake-indexeddb/auto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { closeRecord, type Engine, open, type Storage } from '../../src/index.ts'
import { outcomeOf, readAll } from '../support/index.ts'
import { copyOfDirectory, temporaryDirectory } from './filesystem/directories.ts'
import { OrderedMap, orderedMapStorage } from './key-value/ordered-map.ts'

/** Returns a storage over the same data each time, as a new process would find it. */
type Data = () => Promise<Storage>

const KINDS: readonly [string, () => Promise<Data>, tags?: 'slow'[]][] = [
  ['memory', async () => keeping(memory())],
  ['a directory', files, ['slow']],
  ['IndexedDB', async () => async () => indexedDb('stream-features')],
  ['PostgreSQL', tables, ['slow']],
  ['an ordered map', async () => keeping(orderedMapStorage(new OrderedMap(), { shared: true }))],
]

function keeping(storage: Storage): Data {
  return async () => storage
}

async function files(): Promise<Data> {
  let directory: string | undefined
  return async () => {
    directory = directory === undefined ? await temporaryDirectory() : await copyOfDirectory(directory)
    return filesystem(directory)
  }
}

async function tables(): Promise<Data> {
  const { PGlite } = await import('@electric-sql/pglite')
  const client = await PGlite.create()
  onTestFinished(() => client.close())
  return async () => postgres({ client, listen: false })
}

const EXPIRY = { at: new Date(9e12) }
const METADATA = { 'content-type': 'text/plain', ü: '' }

describe.each(KINDS)('%s', (_, make, tags = []) => {
  it('keeps producers, closed streams, forks, metadata and expiry when engines close and crash', {
    tags,
  }, async () => {
    const data = await make()
    const openNext = async (): Promise<Engine> => {
      const hw = await open({ storage: await data() })
      onTestFinished(() => hw.close())
      return hw
    }
    const batch = (seq: number, epoch = 0) => ({ producer: { id: 'p', epoch, seq } })
    const last = ['c', closeRecord()]

    let hw = await openNext()
    await hw.ensureBasin('basin-one')
    const basin = () => hw.basin('basin-one')
    const stream = () => basin().stream('source')
    await stream().append('a', batch(0))
    const second = await stream().append('b', { ...batch(1), streamSeq: 'n2' })
    await basin().createStream('lasting', {}, { metadata: METADATA, expiry: EXPIRY, records: ['first'] })
    await basin().createStream('fork', {}, { fork: { stream: 'source', seqNum: 2 } })

    const crash = async () => {
      hw = await openNext()
    }
    const close = async () => {
      await hw.close()
      hw = await openNext()
    }
    for (const restart of [crash, close]) {
      await restart()
      expect(await stream().append('b', batch(1))).toEqual({ ...second, duplicate: true })
      expect(await outcomeOf(stream().append('a', batch(0)))).toBe('already_appended')
      expect(await outcomeOf(stream().append('d', batch(3)))).toBe('producer_gap')
      expect(await outcomeOf(stream().append('x', { streamSeq: 'n1' }))).toBe('stream_seq_not_increasing')
      expect(await readAll(basin().stream('fork'))).toEqual(['a', 'b'])
      const { items } = await basin().listStreams({ prefix: 'lasting' })
      expect(items).toMatchObject([{ metadata: METADATA, expiry: EXPIRY }])
      expect(await readAll(basin().stream('lasting'))).toEqual(['first'])
    }

    const closed = await stream().append(last, batch(2))
    for (const restart of [crash, close]) {
      await restart()
      expect(await stream().checkTail()).toMatchObject({ seqNum: 4, closed: true })
      expect(await outcomeOf(stream().append('x'))).toBe('stream_closed')
      expect(await outcomeOf(stream().append('x', batch(0, 1)))).toBe('stream_closed')
      expect(await stream().append(last, batch(2))).toEqual({ ...closed, duplicate: true })
      const bodies = await stream().follow({ seqNum: 0 }, { commands: false }).toArray()
      expect(bodies.map(({ body }) => body)).toEqual(['a', 'b', 'c'])
    }

    await basin().stream('fork').append('own', batch(0))
    await stream().delete()
    await crash()
    expect(await outcomeOf(stream().append('x'))).toBe('stream_deletion_pending')
    expect(await readAll(basin().stream('fork'))).toEqual(['a', 'b', 'own'])
    await basin().stream('fork').delete()
    await crash()
    expect((await stream().append('new', batch(0))).start.seqNum).toBe(0)
  })
})
