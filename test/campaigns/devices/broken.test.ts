// @module-tag nightly

import { describe, expect, it } from 'vitest'
import type { SyncedStream } from '../../../adapters/sync/index.ts'
import { PROBE_SUFFIX } from '../../../adapters/sync/producer-support.ts'
import type { ReadBatch, ReadEvent, Storage, Stream } from '../../../src/index.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import type { StreamChange } from '../../../src/sync/changes.ts'
import type { SyncedRecord } from '../../../src/sync/synced-record.ts'
import { codeOf } from '../../support/engine.ts'
import { wrapped } from '../../support/wrapped-storage.ts'
import { report } from './report.ts'
import type { Sabotage } from './sabotage.ts'
import type { DeviceSettings } from './settings.ts'
import { run } from './simulation.ts'

/** A small number of seeds, each of which must detect the defect at least once. */
const SEEDS = 60
const STEPS = 60
/** The probability of the defect. */
const PROBABILITY = 0.1

type Trigger = () => boolean
type Change = StreamChange<SyncedRecord, SyncedRecord>

function triggerOf(prng: Prng): Trigger {
  return () => prng.chance(PROBABILITY)
}

function overridden<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get: (_, property: keyof Target & string) => {
      const value = own[property] ?? target[property]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/**
 * Batches of an outbox that reach the server as something else. What asks whether a server supports producers
 * reaches it as it is: a server that stored it each time would keep the outbox from anything else.
 */
function onAppend(
  append: (remote: Stream, triggers: Trigger) => Stream['append'],
  settings: Partial<DeviceSettings> = {},
): Sabotage {
  return {
    settings,
    remote: (remote, prng) => {
      const changed = append(remote, triggerOf(prng))
      return overridden(remote, {
        append: (records, options) => {
          const isProbe = options?.producer?.id.endsWith(PROBE_SUFFIX) === true
          return isProbe ? remote.append(records, options) : changed(records, options)
        },
      })
    },
  }
}

/** Records of the server that reach the mirror as something else. */
function onRecords(
  change: (records: readonly SequencedRecord[], triggers: Trigger) => readonly SequencedRecord[],
): Sabotage {
  const changed = (event: ReadEvent | undefined, triggers: Trigger): ReadEvent | undefined => {
    if (event?.kind !== 'batch') return event
    const batch = overridden<ReadBatch>(event.batch, { records: change(event.batch.records, triggers) })
    return { kind: 'batch', batch }
  }
  return {
    remote: (remote, prng) => {
      const triggers = triggerOf(prng)
      const openCursor: Stream['openCursor'] = async (...args) => {
        const cursor = await remote.openCursor(...args)
        return cursor && overridden(cursor, { next: async () => changed(await cursor.next(), triggers) })
      }
      return overridden(remote, { openCursor })
    },
  }
}

type ChangedChange = (change: Change, before: Change | undefined, triggers: Trigger) => Change

/** Changes of a synced stream that reach its view, or its fold, as something else. */
function onChange(reader: 'view' | 'fold', change: ChangedChange): Sabotage {
  return {
    synced: (synced: SyncedStream, prng) => {
      const triggers = triggerOf(prng)
      const changes = synced.changes.bind(synced)
      synced.changes = async function* (from, options) {
        const isReader = (typeof from === 'number') === (reader === 'fold')
        let before: Change | undefined
        for await (const next of changes(from, options)) {
          yield isReader ? { ...next, ...change(next, before, triggers) } : next
          before = next
        }
      }
    },
  }
}

function keepsPending(change: Change, before: Change | undefined, triggers: Trigger): Change {
  if (before === undefined || !triggers()) return change
  const numbers = new Set(change.pending.map(({ number }) => number))
  const kept = before.pending.filter(({ number }) => !numbers.has(number))
  return { ...change, pending: [...kept, ...change.pending] }
}

function dropsPending(change: Change, _: Change | undefined, triggers: Trigger): Change {
  return triggers() ? { ...change, pending: change.pending.slice(1) } : change
}

function repeatsConfirmed(change: Change, _: Change | undefined, triggers: Trigger): Change {
  const repeated = change.confirmed.slice(0, 1)
  return triggers() ? { ...change, confirmed: [...repeated, ...change.confirmed] } : change
}

function losesConfirmed(change: Change, _: Change | undefined, triggers: Trigger): Change {
  return triggers() ? { ...change, confirmed: change.confirmed.slice(1) } : change
}

function reordersPending(change: Change, _: Change | undefined, triggers: Trigger): Change {
  return triggers() ? { ...change, pending: change.pending.toReversed() } : change
}

function reordersConfirmed(change: Change, _: Change | undefined, triggers: Trigger): Change {
  return triggers() ? { ...change, confirmed: change.confirmed.toReversed() } : change
}

function onStorage(change: (storage: Storage, triggers: Trigger) => Storage): Sabotage {
  return { storage: (storage, prng) => change(storage, triggerOf(prng)) }
}

const BROKEN: readonly [string, expected: RegExp, Sabotage][] = [
  [
    'an outbox that sends without a condition',
    /a record is on the server once|records of a device keep their order/,
    onAppend(
      (remote) => (records, options) => remote.append(records, { ...options, matchSeqNum: undefined }),
      { producers: 'ignored' },
    ),
  ],
  [
    'an outbox that sends again what was stored',
    /a record is on the server once/,
    onAppend((remote, triggers) => async (records, options) => {
      const ack = await remote.append(records, options)
      if (triggers()) await remote.append(records)
      return ack
    }),
  ],
  [
    'an outbox that gives a batch another number when it sends it again',
    // A tab that gives the number of another batch never finds its records where the server says they are.
    /a record is on the server once|records of a (device|tab) keep their order|converge/,
    onAppend(
      (remote) => {
        let epoch = 0
        return (records, options) => {
          if (!options?.producer?.seq) return remote.append(records, options)
          const id = `${options.producer.id}/${++epoch}`
          return remote.append(records, { ...options, producer: { id, epoch: 0, seq: 0 } })
        }
      },
      { producers: 'offered' },
    ),
  ],
  [
    'an outbox that takes a batch for the one before',
    // The client rejects the acknowledgement of a batch that has another number of records.
    /an acknowledged append reaches the server|a record stays in the view|shows every record|converge/,
    onAppend(
      (remote) => (records, options) => {
        const { producer } = options ?? {}
        if (!producer?.seq) return remote.append(records, options)
        return remote.append(records, { ...options, producer: { ...producer, seq: producer.seq - 1 } })
      },
      { producers: 'offered' },
    ),
  ],
  [
    'an outbox that sends without a condition to a server that ignores producers',
    /a record is on the server once|records of a (device|tab) keep their order/,
    onAppend(
      (remote) => async (records, options) => {
        try {
          return await remote.append(records, options)
        } catch (error) {
          if (codeOf(error) !== 'unsupported' || options?.matchSeqNum !== undefined) throw error
          return remote.append(records)
        }
      },
      { producers: 'changing' },
    ),
  ],
  [
    'an outbox that reorders the records of a batch',
    /records of a (device|tab) keep their order/,
    onAppend((remote, triggers) => (records, options) => {
      const batch = [records].flat()
      return remote.append(triggers() ? batch.reverse() : batch, options)
    }),
  ],
  [
    'an outbox that gives up a record',
    /shows every record|a record stays in the view|an acknowledged append reaches the server/,
    {
      synced: ({ outbox }, prng) => {
        const append = outbox.append.bind(outbox)
        const triggers = triggerOf(prng)
        outbox.append = async (...args) =>
          triggers() ? { number: 0, confirmed: () => new Promise(() => {}) } : append(...args)
      },
    },
  ],
  [
    'an append that is stored although it rejects',
    /a refused append does not reach the server/,
    {
      synced: ({ outbox }, prng) => {
        const append = outbox.append.bind(outbox)
        const triggers = triggerOf(prng)
        outbox.append = async (...args) => {
          const appended = await append(...args)
          if (triggers()) throw { mayHaveEffects: false }
          return appended
        }
      },
    },
  ],
  [
    'a mirror that skips a record',
    /equals the reduction|the copy of .* (is complete|equals the server)|converge|is in doubt only if/,
    (() => {
      const skipped = new WeakMap<Trigger, number>()
      return onRecords((records, triggers) => {
        const count = skipped.get(triggers) ?? 0
        const isSkipped = records.length > 1 && count === 0 && triggers()
        if (isSkipped) skipped.set(triggers, 1)
        const left = isSkipped ? records.slice(0, -2).concat(records.at(-1)!) : records
        return left.map((record) => ({ ...record, seqNum: record.seqNum - count }))
      })
    })(),
  ],
  [
    // It finds the server's record another one when it connects again, and takes the stream for a new one.
    'a mirror that changes a record',
    /equals the reduction|the copy of .* equals the server|is in doubt only if records were removed/,
    onRecords((records, triggers) =>
      records.map((record) => (triggers() ? { ...record, body: new Uint8Array([120]) } : record)),
    ),
  ],
  [
    'a mirror that changes timestamps',
    /the copy of .* equals the server|is in doubt only if records were removed/,
    onRecords((records, triggers) =>
      records.map((record) => (triggers() ? { ...record, timestamp: record.timestamp + 1 } : record)),
    ),
  ],
  [
    'a view that drops a pending record',
    /a record stays in the view|shows every record|has the records of the view/,
    onChange('view', dropsPending),
  ],
  [
    'a view that keeps a record pending that it has confirmed',
    /a record is shown once/,
    onChange('view', keepsPending),
  ],
  ['a view that repeats a confirmed record', /a record is shown once/, onChange('view', repeatsConfirmed)],
  [
    'a view that loses a confirmed record',
    /a record stays in the view|shows every record|has the records of (the view|its copy)|converge/,
    onChange('view', losesConfirmed),
  ],
  [
    'a view that reorders pending records',
    /pending records are in the order of their numbers/,
    onChange('view', reordersPending),
  ],
  [
    'a view that reorders confirmed records',
    /confirmed records are in the order of the server/,
    onChange('view', reordersConfirmed),
  ],
  ['a fold that drops a pending record', /has the records of the view/, onChange('fold', dropsPending)],
  [
    'a fold that keeps a record pending that it has confirmed',
    /reduces a record once/,
    onChange('fold', keepsPending),
  ],
  ['a fold that loses a confirmed record', /equals the reduction/, onChange('fold', losesConfirmed)],
  ['a fold that reorders pending records', /reduces records in order/, onChange('fold', reordersPending)],
  [
    'a fold that reorders confirmed records',
    /reduces records in order|equals the reduction/,
    onChange('fold', reordersConfirmed),
  ],
  [
    'a fold that applies a record twice',
    /reduces a record once|equals the reduction/,
    {
      reduce: (reduce, prng) => {
        const triggers = triggerOf(prng)
        return (state, record) => reduce(triggers() ? reduce(state, record) : state, record)
      },
    },
  ],
  [
    'a fold that skips a record',
    /equals the reduction|has the records of the view/,
    {
      reduce: (reduce, prng) => {
        const triggers = triggerOf(prng)
        return (state, record) => (triggers() ? state : reduce(state, record))
      },
    },
  ],
  [
    'a snapshot without the last record',
    /equals the reduction/,
    {
      restored: (state, prng) =>
        prng.chance(PROBABILITY) ? { ...state, records: state.records.slice(0, -1) } : state,
    },
  ],
  [
    'a snapshot with a record that comes after it',
    /reduces a record once|equals the reduction/,
    {
      restored: ({ version, records }, prng) => ({
        version,
        records: prng.chance(PROBABILITY) ? [...records, ...records.slice(-1)] : records,
      }),
    },
  ],
  [
    'a fold that ignores its version',
    /ignores snapshots of other versions|equals the reduction/,
    { version: () => 1 },
  ],
  [
    'a server that loses what it acknowledges',
    /reaches the server|shows every record|equals the reduction|the copy of .* (is complete|equals)/,
    onStorage((storage, triggers) =>
      wrapped(storage, {}, (session) => ({
        append: async (request) => {
          if (!triggers()) await session.append(request)
        },
      })),
    ),
  ],
]

describe('the checks detect', () => {
  it.for(BROKEN)('%s', { timeout: 60_000 }, async ([, expected, sabotage], { signal }) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      // A run that went on after a timeout would disturb the tests that follow.
      const result = await run({ seed, steps: STEPS, sabotage, signal })
      if (result.violation === undefined) continue
      expect(result.violation.expected).toMatch(expected)
      expect(report(result)).toContain(`npm run devices -- --seed ${seed} --steps ${STEPS} --history`)
      return
    }
    expect.fail(`${SEEDS} seeds did not find it`)
  })
})
