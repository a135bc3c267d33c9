import type { Engine, Stream } from '../../src/index.ts'
import { loadFold, openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'

/** The records since the snapshot, and those of a batch. */
const NEW_RECORDS = 1_000
const BODY = 'x'.repeat(256)

const { fold } = await loadFold()

interface Place {
  readonly directory: string
  readonly size: number
  readonly onDisk: boolean
}

host({
  /** Opens a fold, waits until it is complete, and closes it. */
  opening: (place: Place) =>
    prepared(place, async (stream, size) => {
      const folded = foldOf(stream)
      if ((await folded.loaded()) !== size * BODY.length) throw new Error(`the fold is ${folded.value}`)
      await folded.close()
    }),

  /** Reads the records since the snapshot. */
  reading: (place: Place) =>
    prepared(place, async (stream, size) => {
      let bytes = 0
      for await (const { records } of stream.read({ seqNum: size - NEW_RECORDS }).batches()) {
        for (const { body } of records) bytes += body.length
      }
      if (bytes !== NEW_RECORDS * BODY.length) throw new Error(`read ${bytes} bytes`)
    }),
})

/** A stream with a snapshot that misses the last 1,000 records. */
async function prepared(
  { directory, size, onDisk }: Place,
  use: (stream: Stream, size: number) => Promise<void>,
): Promise<Prepared> {
  const headwater = await openHeadwater(onDisk ? directory : undefined)
  const stream = await filled(headwater, size - NEW_RECORDS)
  const folded = foldOf(stream, 1)
  await folded.loaded()
  await folded.close()
  await append(stream, NEW_RECORDS)
  return {
    async turn(count) {
      for (let i = 0; i < count; i++) await use(stream, size)
    },
    close: () => headwater.close(),
  }
}

async function filled(headwater: Engine, size: number): Promise<Stream> {
  const stream = streamNumber(headwater, 0)
  for (let first = 0; first < size; first += NEW_RECORDS) await append(stream, NEW_RECORDS)
  return stream
}

async function append(stream: Stream, records: number): Promise<void> {
  await stream.append(Array.from({ length: records }, () => BODY))
}

/** By default, so rarely that the records since the snapshot never cause another one. */
function foldOf(stream: Stream, snapshotEvery = 1_000_000) {
  return fold(stream, {
    initial: 0,
    reduce: (bytes, { body }) => bytes + body.length,
    version: 1,
    snapshotEvery,
  })
}
