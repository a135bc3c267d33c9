import { beforeAll, describe, expect, test } from 'vitest'
import { NOW, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { type AppendSpec, LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { emptyHead } from '../../../src/storage/heads.ts'
import { checkAcceptsAppends, checkPrefixes, checkRecovered } from './check-recovered.ts'
import { hookedFiles, systemError } from './hooked-files.ts'
import { type Loss, SimulatedDisk } from './simulated-disk.ts'
import { verifyDisk } from './verify-disk.ts'
import { attemptOfHead, begin, type History, openSimulated, recordOutcome } from './workload.ts'

type Durability = 'power-loss' | 'process-crash'

/** So small that a few appends roll a journal. */
const ROLL_BYTES = 1_200

/** A call of the disk that fails, with the code of its error. */
interface Fault {
  readonly call: DiskCall
  readonly code: string
}

const FAULTS = [
  // After a part of it was written.
  { call: 'write', code: 'EIO' },
  { call: 'write', code: 'ENOSPC' },
  // The system loses some of what was written since the last one.
  { call: 'datasync', code: 'EIO' },
  { call: 'syncDirectory', code: 'EIO' },
  { call: 'open', code: 'EMFILE' },
  { call: 'read', code: 'EIO' },
  { call: 'rename', code: 'EIO' },
  { call: 'unlink', code: 'EBUSY' },
  { call: 'close', code: 'EIO' },
] as const

type DiskCall = (typeof FAULTS)[number]['call']
/** The calls whose failure has no effect on the disk. */
const OTHER_CALLS: readonly string[] = ['syncDirectory', 'open', 'read', 'rename', 'unlink', 'close']

interface Operation {
  readonly does: (calls: Calls) => Promise<unknown>
  /** The kinds of calls of the disk that it makes, each of which the matrix fails. */
  readonly makes: readonly DiskCall[]
}

const ONE_GROUP: readonly DiskCall[] = ['write', 'datasync']
const ALL_CALLS = [...new Set(FAULTS.map(({ call }) => call))]

/** The calls of the contract, and the work that they cause in the background. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  'opening after a crash': {
    does: (calls) => calls.append('a'),
    makes: ['write', 'datasync', 'syncDirectory', 'open', 'read'],
  },
  'an append': { does: (calls) => calls.append('a', { count: 3 }), makes: ONE_GROUP },
  'calls that share a group': {
    does: (calls) =>
      Promise.all([calls.append('a'), calls.append('b'), calls.put(), calls.append('a', { count: 2 })]),
    makes: ONE_GROUP,
  },
  'a trim': { does: (calls) => calls.append('a', { trimPoint: 3, trimmedAt: NOW }), makes: ONE_GROUP },
  'a commit of documents': { does: (calls) => calls.put(), makes: ONE_GROUP },
  'the creation of a log': { does: (calls) => calls.create('c'), makes: ONE_GROUP },
  'the deletion of a log': { does: (calls) => calls.remove('b'), makes: ONE_GROUP },
  'a new epoch': { does: (calls) => calls.setEpoch('a'), makes: ONE_GROUP },
  'freeing expired records': { does: (calls) => calls.reclaim(), makes: [...ONE_GROUP, 'open', 'read'] },
  reads: { does: (calls) => calls.read(), makes: ['open', 'read'] },
  'appends that roll journals': {
    does: async (calls) => {
      for (let i = 0; i < 12; i++) await calls.append(i % 2 === 0 ? 'a' : 'b', { bodyBytes: 150 + 10 * i })
    },
    makes: ALL_CALLS,
  },
  'the compaction of segments': {
    does: async (calls) => {
      await calls.remove('b')
      for (let i = 0; i < 8; i++) await calls.append('a', { bodyBytes: 300 })
    },
    makes: ALL_CALLS,
  },
}

/** Moments at which the fault is injected: the nth of the calls that it can hit, once or from then on. */
interface Moment {
  readonly nth: number
  readonly isLasting: boolean
}

const FIRST_MOMENT: readonly Moment[] = [{ nth: 1, isLasting: false }]
const SOME_MOMENTS = momentsAt([1, 2, 3, 5, 8, 13, 21])
const EVERY_MOMENT = momentsAt(Array.from({ length: 60 }, (_, i) => i + 1))

function momentsAt(numbers: readonly number[]): Moment[] {
  return numbers.flatMap((nth) => [
    { nth, isLasting: false },
    { nth, isLasting: true },
  ])
}

describe.each<[title: string, Durability, readonly Moment[], ('slow' | 'nightly')[]]>([
  ['if the first of its calls of the disk fails', 'power-loss', FIRST_MOMENT, []],
  ['if some of its calls of the disk fail', 'power-loss', SOME_MOMENTS, ['slow']],
  ['with durability process-crash, if some of them fail', 'process-crash', SOME_MOMENTS, ['slow']],
  ['if any of its calls of the disk fails', 'power-loss', EVERY_MOMENT, ['nightly']],
  ['with durability process-crash, if any of them fails', 'process-crash', EVERY_MOMENT, ['nightly']],
])('%s,', (_, durability, moments, tags) => {
  beforeAll(() => prepared(durability))

  // These are many calls of the disk, or cause them.
  const operations = Object.keys(OPERATIONS).filter(
    (name) => tags.length > 0 || !/opening|roll|compact|deletion/.test(name),
  )

  test.each(operations)(
    '%s: nothing acknowledged is lost, what failed is absent or whole, and the directory opens again',
    { tags },
    async (operation) => {
      const failed = new Set<DiskCall>()
      for (const fault of FAULTS) {
        for (const moment of moments) {
          // Otherwise it makes fewer of these calls.
          if (!(await isHit(durability, operation, { ...fault, ...moment }))) break
          failed.add(fault.call)
        }
      }
      const isSynced = durability === 'power-loss' || /opening|roll|compaction/.test(operation)
      const calls = OPERATIONS[operation]!.makes.filter((call) => isSynced || call !== 'datasync')
      expect(failed).toEqual(new Set(calls))
    },
  )
})

const preparations: Partial<Record<Durability, Promise<Prepared>>> = {}

function prepared(durability: Durability): Promise<Prepared> {
  preparations[durability] ??= prepare(durability)
  return preparations[durability]
}

/** A directory as a crash left it, and what was written to it. */
interface Prepared {
  readonly files: ReadonlyMap<string, Buffer>
  readonly history: History
}

/** Two logs with blocks in segments and in a journal, and documents in a checkpoint and in a journal. */
async function prepare(durability: Durability): Promise<Prepared> {
  const disk = new SimulatedDisk(new Prng(1))
  const history: History = { logs: [], puts: [], reclaims: [] }
  const session = await openSimulated(disk, ROLL_BYTES, durability)
  const calls = new Calls(disk, session, history)
  for (const logId of ['a', 'b']) await calls.create(logId)
  for (let i = 0; i < 7; i++) {
    await calls.append('a', { bodyBytes: i % 3 === 0 ? 200 : 20, expiresAt: i % 4 === 0 ? NOW + i : null })
    await calls.append('b', { bodyBytes: 90 })
    await calls.put()
  }
  const crashed = disk.crashedAfter(disk.length, 'nothing', new Prng(2))
  await session.close()
  const kinds = new Set(crashed.names.map((name) => name.split('-')[0]))
  expect(kinds).toEqual(new Set(['checkpoint', 'journal', 'reserve', 'segment']))
  for (const attempt of [...history.puts, ...history.logs.flatMap(({ appends }) => appends)]) {
    Object.assign(attempt, { calledAt: 0, settledAt: 0 })
  }
  return { files: new Map(crashed.names.map((name) => [name, crashed.contentOf(name)])), history }
}

/** Runs an operation, and then crashes. Resolves to whether the fault has hit it. */
async function isHit(durability: Durability, operation: string, fault: Fault & Moment): Promise<boolean> {
  const { files: written, history: before } = await prepared(durability)
  const disk = new SimulatedDisk(new Prng(fault.nth), written)
  const history = structuredClone(before)
  let made = 0
  let isArmed = operation.startsWith('opening')
  let happened = 0
  let open = 0
  const strike = (hit: DiskCall): string | undefined => {
    if (!isArmed || hit !== fault.call) return undefined
    made++
    if (made < fault.nth || (made > fault.nth && !fault.isLasting)) return undefined
    happened++
    return fault.code
  }
  // Their failures have effects.
  disk.faults = (hit) => (hit === 'write' || hit === 'datasync' ? strike(hit) : undefined)
  const files = hookedFiles(disk, (hit) => {
    const code = OTHER_CALLS.includes(hit) ? strike(hit as DiskCall) : undefined
    // The system closes the file nevertheless.
    if (hit === 'close') open--
    if (code !== undefined) throw systemError(code)
    if (hit === 'open') open++
  })
  try {
    const session = await opened(() => openSimulated(files, ROLL_BYTES, durability), isArmed)
    if (session !== undefined) {
      isArmed = true
      const calls = new Calls(disk, session, history)
      await OPERATIONS[operation]!.does(calls)
      isArmed = false
      // Whatever is acknowledged after a failure lasts, too.
      if (happened > 0) await calls.append('a')
      if (happened > 0) await checkRecovered(session, history, disk.length)
      await session.close().catch(expectFailure)
    }
    isArmed = false
    if (happened === 0) return false
    const { call, nth } = fault
    if (call !== 'close') expect(open, 'files that are left open').toBe(0)
    // A system that loses what was written may lose what `process-crash` has acknowledged.
    const mayLose = durability === 'process-crash' && call === 'datasync'
    const turn = nth + FAULTS.findIndex((other) => other.call === call && other.code === fault.code)
    await checkAfterCrash(disk, history, durability, mayLose, turn)
    return true
  } catch (error) {
    const howLong = fault.isLasting ? ', as later ones do' : ''
    const when = `${fault.call} number ${fault.nth} fails with ${fault.code}${howLong}`
    throw new Error(`${when}: ${error}`, { cause: error })
  }
}

/** Resolves to undefined if the opening fails, which it may only by the injected fault. */
async function opened(
  open: () => Promise<StorageSession>,
  mayFail: boolean,
): Promise<StorageSession | undefined> {
  if (!mayFail) return open()
  return open().catch((error: unknown) => {
    expectFailure(error)
    return undefined
  })
}

/**
 * Of calls without a result: files that cannot be closed make `close` reject with the error of the system.
 */
function expectFailure(error: unknown): void {
  if (error instanceof Error && 'code' in error) return
  expect(StorageFailure.is(error), `a typed error, not ${error}`).toBe(true)
}

const LOSSES: Readonly<Record<Durability, readonly Loss[]>> = {
  'power-loss': ['nothing', 'everything', 'some', 'reordered'],
  'process-crash': ['nothing', 'everything'],
}

/** The kinds of losses take turns, because each crash takes as long as the operation. */
async function checkAfterCrash(
  disk: SimulatedDisk,
  history: History,
  durability: Durability,
  mayLose: boolean,
  turn: number,
): Promise<void> {
  const losses = LOSSES[durability]
  const loss = losses[turn % losses.length]!
  // The last one happens amid the operation.
  const count = loss === 'reordered' ? Math.ceil(disk.length / 2) : disk.length
  const crashed = disk.crashedAfter(count, loss, new Prng(count))
  try {
    const { problems } = await verifyDisk(crashed)
    expect(problems).toEqual([])
    const session = await openSimulated(crashed, ROLL_BYTES, durability)
    const losesUnsynced = durability === 'process-crash' && loss === 'everything'
    if (losesUnsynced || mayLose) await checkPrefixes(session, history, count)
    else await checkRecovered(session, history, count)
    await checkAcceptsAppends(session, history)
    await session.close()
  } catch (error) {
    throw new Error(`after a crash that loses ${loss}: ${error}`, { cause: error })
  }
}

/** Calls of a session whose outcomes are recorded. */
class Calls {
  readonly #disk: SimulatedDisk
  readonly #session: StorageSession
  readonly #history: History

  constructor(disk: SimulatedDisk, session: StorageSession, history: History) {
    this.#disk = disk
    this.#session = session
    this.#history = history
  }

  async create(logId: string): Promise<void> {
    const creation = begin(this.#disk, { head: emptyHead(1, NOW), parent: undefined, blocks: [] })
    this.#history.logs.push({ logId, appends: [creation], deletion: undefined })
    const call = this.#session.commit([
      { kind: 'create-log', logId, epoch: 1, createdAt: NOW },
      { kind: 'put', collection: 'settings', key: logId, value: 'its log exists', expect: null },
    ])
    await recordOutcome(this.#disk, creation, call)
  }

  async remove(logId: string): Promise<void> {
    const log = this.#log(logId)
    log.deletion = begin(this.#disk, {})
    const call = this.#session.commit([
      { kind: 'delete-log', logId },
      { kind: 'delete', collection: 'settings', key: logId },
    ])
    await recordOutcome(this.#disk, log.deletion, call)
  }

  async append(logId: string, spec: AppendSpec = {}): Promise<void> {
    const current = await this.#current(logId)
    if (current === undefined) return
    const { appends } = this.#log(logId)
    const request = new LogWriter(this.#session, logId, current.head).request(spec)
    const attempt = begin(this.#disk, { head: request.head, parent: current, blocks: request.blocks })
    appends.push(attempt)
    await recordOutcome(this.#disk, attempt, this.#session.append(request))
  }

  async setEpoch(logId: string): Promise<void> {
    const current = await this.#current(logId)
    if (current === undefined) return
    const epoch = current.head.epoch + 1
    const attempt = begin(this.#disk, { head: { ...current.head, epoch }, parent: current, blocks: [] })
    this.#log(logId).appends.push(attempt)
    await recordOutcome(this.#disk, attempt, this.#session.commit([{ kind: 'set-epoch', logId, epoch }]))
  }

  async put(): Promise<void> {
    const attempt = begin(this.#disk, { value: this.#history.puts.length, deletes: false })
    this.#history.puts.push(attempt)
    const { value } = attempt
    const call = this.#session.commit([
      { kind: 'put', collection: 'streams', key: 'one', value },
      { kind: 'put', collection: 'streams', key: 'other', value },
    ])
    await recordOutcome(this.#disk, attempt, call)
  }

  async reclaim(): Promise<void> {
    const limits = { now: NOW + 8, trimmedBefore: NOW, blocksMax: 100 }
    this.#history.reclaims.push({ ...limits, calledAt: this.#disk.length })
    await this.#session.reclaim(limits).catch(expectFailure)
  }

  async read(): Promise<void> {
    await this.#session.read('a', WHOLE_LOG).catch(expectFailure)
    await this.#session.read('b', { ...WHOLE_LOG, from: { timestamp: NOW + 5 } }).catch(expectFailure)
    await this.#session.get('settings', 'a').catch(expectFailure)
    await this.#session.list('settings', { prefix: '', after: '', limit: 9 }).catch(expectFailure)
  }

  #log(logId: string): History['logs'][number] {
    return this.#history.logs.find((log) => log.logId === logId)!
  }

  /** The last attempt that took effect; undefined if the storage cannot tell. */
  async #current(logId: string) {
    const head = await this.#session.head(logId).catch(expectFailure)
    return head && attemptOfHead(this.#log(logId).appends, head)
  }
}
