import { EMPTY_BYTES, lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { invalid } from '../../../src/model/errors.ts'
import { assertOptions, type MembersOf, oneOf } from '../../../src/model/validation.ts'
import { trackExternalWork } from '../../../src/runtime/clock.ts'
import type { Durability, Storage } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { FORMAT, FORMAT_KEY } from './layout.ts'
import { KeyValueSession } from './session.ts'
import type { OrderedKeyValueStore } from './store.ts'

/** Options of `orderedKeyValueStorage`. */
export interface OrderedKeyValueOptions {
  /** A short name for messages and test titles, such as `leveldb`. */
  readonly name: string
  /** The worst failure that a batch survives once `transact` has resolved. */
  readonly durability: 'none' | Durability
  /**
   * Whether several engines may have the store open at the same time: then `transact` must check what a batch
   * expects. False by default.
   */
  readonly shared?: boolean | undefined
  /** Opens the store, and creates it if it is missing. */
  readonly open: () => Promise<OrderedKeyValueStore>
}

const ORDERED_KEY_VALUE_OPTIONS: MembersOf<OrderedKeyValueOptions> = {
  name: 'string',
  durability: oneOf(['none', 'process-crash', 'power-loss']),
  shared: 'boolean',
  open: 'function',
}

/** The number of characters that a message quotes of an unknown format. */
const FORMAT_CHARACTERS_MAX = 20

/**
 * Creates a storage in an ordered key-value store, with everything that the contract requires. Does nothing
 * until it is opened.
 *
 * An append writes two values; appends that wait share a batch. Small blocks of records that do not expire
 * are merged in the background. Other engines are not notified of changes: they poll. Throws `invalid` for
 * invalid options.
 */
export function orderedKeyValueStorage(options: OrderedKeyValueOptions): Storage {
  assertOptions(options, ORDERED_KEY_VALUE_OPTIONS)
  const { name, durability, shared = false, open } = options
  if (name === undefined || durability === undefined || open === undefined) {
    throw invalid('`name`, `durability` and `open` are required', 'options')
  }
  let isOpen = false
  return {
    manifest: { name, durability, shared, notifications: 'none' },
    async open() {
      if (isOpen && !shared) throw failure('blocked', `another engine has this ${name} storage open`)
      isOpen = true
      try {
        const store = await openStore(open, name)
        return new KeyValueSession(store, shared, () => {
          isOpen = false
        })
      } catch (error) {
        isOpen = false
        throw error
      }
    },
  }
}

async function openStore(open: OrderedKeyValueOptions['open'], name: string): Promise<OrderedKeyValueStore> {
  const store = withFailures(await failing(open, name, true), name)
  try {
    const format = await formatOf(store)
    if (format !== FORMAT) {
      throw failure('blocked', `the store has format ${format}; this version of headwater reads ${FORMAT}`)
    }
    return store
  } catch (error) {
    await store.close().catch(() => {})
    throw error
  }
}

/** Reads the format of the store, which is this one if the store is new. */
async function formatOf(store: OrderedKeyValueStore): Promise<string> {
  const found = await store.get(FORMAT_KEY)
  if (found !== undefined) return lossyTextOf(found).slice(0, FORMAT_CHARACTERS_MAX)
  // If another engine creates the store at the same time, it may be of another version.
  const puts = [[FORMAT_KEY, utf8(FORMAT)]] as const
  const isCreated = await store.transact({ expected: [[FORMAT_KEY, undefined]], puts, deletes: [] })
  return isCreated ? FORMAT : lossyTextOf((await store.get(FORMAT_KEY)) ?? EMPTY_BYTES)
}

/** The same store, whose errors are failures of a storage. Virtual clocks wait for its calls. */
function withFailures(store: OrderedKeyValueStore, name: string): OrderedKeyValueStore {
  return {
    get: (key) => failing(() => store.get(key), name, true),
    scan: (range) => failing(() => store.scan(range), name, true),
    transact: (batch) => failing(() => store.transact(batch), name, false),
    close: () => failing(() => store.close(), name, true),
  }
}

async function failing<Result>(
  work: () => Promise<Result>,
  name: string,
  nothingWritten: boolean,
): Promise<Result> {
  try {
    return await trackExternalWork(work())
  } catch (error) {
    if (StorageFailure.is(error)) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new StorageFailure('io', `${name} failed: ${reason}`, { nothingWritten, cause: error })
  }
}

function failure(kind: StorageFailure['kind'], message: string): StorageFailure {
  return new StorageFailure(kind, message, { nothingWritten: true })
}
