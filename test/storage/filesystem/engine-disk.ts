import { aegis256 } from '../../../adapters/aegis-256/index.ts'
import { WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open, type Stream, trimRecord } from '../../../src/index.ts'
import type { StreamConfigInput } from '../../../src/model/config.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { Collection, StorageSession } from '../../../src/storage/contract.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const ROLL_BYTES = 5_000
const ROUNDS = 9
const ENCRYPTION_KEY = new Uint8Array(32).fill(7)
const COLLECTIONS: readonly Collection[] = ['basins', 'streams', 'deadlines', 'tokens', 'usage', 'settings']

/**
 * Streams that are plain, encrypted, trimmed, deleted, and of which records expire, as an engine leaves them,
 * in files of every kind.
 */
export async function engineDisk(
  end: 'closed' | 'crashed' | 'reopened',
  durability: 'power-loss' | 'process-crash' = 'power-loss',
): Promise<SimulatedDisk> {
  const prng = new Prng(1)
  const disk = new SimulatedDisk(prng)
  const clock = virtualClock()
  const suite = await aegis256()
  const hw = await open({
    storage: {
      manifest: { name: 'simulated', durability: 'power-loss', shared: false, notifications: 'none' },
      open: () => openSimulated(disk, ROLL_BYTES, durability),
    },
    clock,
    ciphers: [suite],
    random: () => prng.next(),
    onBackgroundError: (error) => {
      throw error
    },
  })
  const plain = hw.basin('plain')
  await hw.ensureBasin('plain')
  await hw.ensureBasin('by-aes', { streamCipher: 'aes-256-gcm' })
  await hw.ensureBasin('by-aegis', { streamCipher: 'aegis-256' })
  const stream = async (name: string, config: StreamConfigInput = {}) => {
    await plain.ensureStream(name, config)
    return plain.stream(name)
  }
  const streams = [
    await stream('kept'),
    await stream('brief', { retentionPolicy: { ageSeconds: 100 }, deleteOnEmpty: { minAgeSeconds: 3600 } }),
    await stream('trimmed'),
    hw.basin('by-aes').stream('sealed', { encryptionKey: ENCRYPTION_KEY }),
    hw.basin('by-aegis').stream('sealed', { encryptionKey: ENCRYPTION_KEY }),
    await stream('deleted'),
  ]
  await hw.issueAccessToken({ id: 'ci', scope: { basins: { prefix: '' }, ops: ['read'] } })
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(streams.map((stream) => stream.append(records(prng))))
    if (round % 3 === 2) await trimHalf(streams[2]!)
    if (round === 4) await plain.stream('deleted').delete()
    if (round === 4) streams.pop()
    await clock.advance('30s')
  }
  const crashed = disk.crashedAfter(disk.length, 'nothing', prng)
  await hw.close()
  if (end !== 'reopened') return end === 'crashed' ? crashed : disk
  return reopened(crashed, durability)
}

/**
 * Two openings that write, of which the first crashes again: journals that end where the next one says, one
 * of them with a group behind its end.
 */
async function reopened(
  disk: SimulatedDisk,
  durability: 'power-loss' | 'process-crash',
): Promise<SimulatedDisk> {
  const first = await openSimulated(disk, Number.MAX_SAFE_INTEGER, durability)
  for (const value of [1, 2, 3]) await put(first, value)
  const crashed = disk.crashedAfter(disk.length, 'nothing', new Prng(2))
  await first.close()
  const second = await openSimulated(crashed, Number.MAX_SAFE_INTEGER, durability)
  for (const value of [4, 5]) await put(second, value)
  await second.close()
  return crashed
}

function put(session: StorageSession, value: number): Promise<void> {
  return session.commit([{ kind: 'put', collection: 'settings', key: 'of a later version', value }])
}

function records(prng: Prng) {
  return Array.from({ length: 1 + prng.below(3) }, (_, i) => ({
    headers: [['kind', `${i}`] as const],
    body: 'x'.repeat(prng.chance(0.2) ? 350 : prng.below(100)),
  }))
}

async function trimHalf(stream: Stream): Promise<void> {
  const { seqNum } = await stream.checkTail()
  await stream.append([trimRecord(Math.floor(seqNum / 2))])
}

/** All that an engine could read from the disk, or the error of opening it. Does not change the disk. */
export async function contentsOf(disk: SimulatedDisk): Promise<unknown> {
  const copy = changedDisk(disk, (_, content) => content)
  let session: StorageSession | undefined
  try {
    session = await openSimulated(copy, Number.MAX_SAFE_INTEGER)
    const contents: unknown[] = []
    for (const collection of COLLECTIONS) {
      const documents = await session.list(collection, { prefix: '', after: '', limit: 10_000 })
      contents.push(documents)
      if (collection !== 'streams') continue
      for (const { value } of documents) {
        const { logId } = value as unknown as { readonly logId: string }
        const blocks = await session.read(logId, WHOLE_LOG)
        contents.push(await session.head(logId), await session.measure([logId]))
        contents.push(blocks.map((block) => ({ ...block, data: Buffer.from(block.data).toString('latin1') })))
      }
    }
    return contents
  } catch (error) {
    return String(error)
  } finally {
    await session?.close()
  }
}

/** A disk with the same files, changed; undefined removes one. */
export function changedDisk(
  disk: SimulatedDisk,
  change: (name: string, content: Buffer) => Buffer | undefined,
): SimulatedDisk {
  const files = disk.names.flatMap((name): [string, Buffer][] => {
    const content = change(name, disk.contentOf(name))
    return content === undefined ? [] : [[name, content]]
  })
  return new SimulatedDisk(new Prng(1), new Map(files))
}
