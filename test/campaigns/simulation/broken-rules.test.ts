// @module-tag nightly

import { describe, it } from 'vitest'
import { utf8 } from '../../../src/model/bytes.ts'
import { decodeRecords, encodeRecords } from '../../../src/storage/block-codec.ts'
import type { CatalogChange, Document, Head } from '../../../src/storage/contract.ts'
import type { StreamDocument } from '../../../src/storage/documents.ts'
import {
  type Defect,
  expectFound,
  onBasin,
  onStorage,
  onStream,
  overridden,
  withChangedAppends,
} from './sabotage.ts'
import type { Sabotage } from './world.ts'

/** Storages that forget a part of the write state. */
function forgetting(member: keyof NonNullable<Head['writeState']>): Sabotage {
  return onStorage((session, triggers) => ({
    head: async (...args) => {
      const head = await session.head(...args)
      return head?.writeState && triggers()
        ? { ...head, writeState: { ...head.writeState, [member]: undefined } }
        : head
    },
  }))
}

/** Services that append a batch again, changed, if it was rejected with one of the codes. */
function repeatingWithout(condition: 'producer' | 'streamSeq', codes: readonly string[]): Sabotage {
  return onStream((stream) => ({
    append: (records, conditions) =>
      stream.append(records, conditions).catch(async (error) => {
        if (codes.includes(error.code))
          await stream.append(records, { ...conditions, [condition]: undefined })
        throw error
      }),
  }))
}

function onDocuments(change: (document: StreamDocument) => StreamDocument): Sabotage {
  return onStorage((session) => {
    const changed = (document: Document): Document =>
      ({ ...document, value: change(document.value as unknown as StreamDocument) }) as unknown as Document
    return {
      get: async (collection, key) => {
        const document = await session.get(collection, key)
        return document && collection === 'streams' ? changed(document) : document
      },
    }
  })
}

function onCommit(change: (change: CatalogChange) => CatalogChange): Sabotage {
  return onStorage((session) => ({ commit: (changes) => session.commit(changes.map(change)) }))
}

/** The document of a stream that is stored, if a change stores one. */
function documentOf(change: CatalogChange): StreamDocument | undefined {
  return change.kind === 'put' && change.collection === 'streams'
    ? (change.value as unknown as StreamDocument)
    : undefined
}

/** Logs that no stream refers to yet get other records. */
function changesContent(): Sabotage {
  const published = new Set<string>()
  return onStorage((session) => ({
    commit: async (changes) => {
      for (const change of changes) published.add(documentOf(change)?.logId ?? '')
      await session.commit(changes)
    },
    append: ({ block, ...request }) => {
      const records = decodeRecords(block.data).map((record) => ({ ...record, body: utf8('another') }))
      const data = published.has(request.logId) ? block.data : encodeRecords(records)
      return session.append({ ...request, block: { ...block, data } })
    },
  }))
}

const BROKEN: readonly Defect[] = [
  [
    'a storage that forgets the producers of a log',
    /is stored once|is stored only when its conditions hold|is refused only by a rule|the head of/,
    forgetting('producers'),
  ],
  [
    'a storage that forgets that a log is closed',
    /a closed stream gets no more records|the head of|a tail check returns the tail|has a tail that/,
    forgetting('closed'),
  ],
  [
    'a storage that forgets the last `streamSeq`',
    /is stored only when its conditions hold|the head of|is refused only/,
    forgetting('streamSeq'),
  ],
  [
    'a storage that does not store that a log is closed',
    /the head of/,
    withChangedAppends(({ head, ...request }) => ({
      ...request,
      head: { ...head, writeState: head.writeState && { ...head.writeState, closed: undefined } },
    })),
  ],
  [
    'a service that stores a repeated batch of a producer again',
    /is stored once/,
    onStream((stream) => ({
      append: async (records, conditions) => {
        const ack = await stream.append(records, conditions)
        if (ack.duplicate && conditions?.producer) await stream.append(records).catch(() => {})
        return ack
      },
    })),
  ],
  [
    'a service that acknowledges a repeated batch as a new one',
    /is acknowledged as stored by one call|is acknowledged when it is stored/,
    onStream((stream) => ({
      append: async (records, conditions) => {
        const { duplicate: _, ...ack } = await stream.append(records, conditions)
        return ack
      },
    })),
  ],
  [
    'a service that acknowledges a first batch as a repeated one',
    /is no duplicate|finds its stream closed/,
    onStream((stream, triggers) => ({
      append: async (records, conditions) => {
        const ack = await stream.append(records, conditions)
        return triggers() ? { ...ack, duplicate: true } : ack
      },
    })),
  ],
  [
    'a service that stores a batch after a gap',
    /is stored only when its conditions hold/,
    repeatingWithout('producer', ['producer_gap']),
  ],
  [
    'a service that stores a batch of an earlier epoch',
    /is stored only when its conditions hold|is stored once/,
    repeatingWithout('producer', ['producer_fenced']),
  ],
  [
    'a service that stores a batch whose `streamSeq` does not increase',
    /is stored only when its conditions hold/,
    repeatingWithout('streamSeq', ['stream_seq_not_increasing']),
  ],
  [
    'a service that finds a gap where there is none',
    /is refused only by a rule/,
    onStream((stream, triggers) => ({
      append: (records, conditions) => {
        const { producer } = conditions ?? {}
        const skipped = producer && triggers() ? { producer: { ...producer, seq: producer.seq + 3 } } : {}
        return stream.append(records, { ...conditions, ...skipped })
      },
    })),
  ],
  [
    'a session that does not end with its stream',
    /no actor waits forever/,
    onStream((stream) => ({
      openCursor: async (...args) => {
        const cursor = await stream.openCursor(...args)
        const next = async () => {
          const event = await cursor!.next()
          const isClosed = event === undefined && (await stream.checkTail()).closed
          return isClosed ? new Promise<undefined>(() => {}) : event
        }
        return cursor && overridden(cursor, { next })
      },
    })),
  ],
  [
    'a fork without its last record',
    /copies exactly the records/,
    onBasin((basin) => ({
      createStream: (name, config, options = {}) => {
        const { fork } = options
        const seqNum = Math.max(0, (fork?.seqNum ?? 0) - 1)
        return basin.createStream(
          name,
          config,
          fork?.seqNum ? { ...options, fork: { ...fork, seqNum } } : options,
        )
      },
    })),
  ],
  [
    'a storage that changes what a stream begins with',
    /is that of its source|was appended by a client/,
    changesContent(),
  ],
  [
    'a storage that frees the name of a stream with forks',
    /is reserved for its forks|has \d forks/,
    onCommit((change) => {
      const document = documentOf(change)
      if (document?.deletedAt === undefined || change.kind !== 'put') return change
      const { collection, key } = change
      return { kind: 'delete', collection, key }
    }),
  ],
  [
    'a storage that loses the metadata of a stream',
    /keeps \{|has the metadata, expiry and source|creates a stream/,
    onCommit((change) => {
      const document = documentOf(change)
      if (document === undefined || change.kind !== 'put') return change
      const { metadata: _, ...value } = document
      return { ...change, value: value as never }
    }),
  ],
  [
    'an engine that deletes streams before they expire',
    /has no request for its deletion/,
    onDocuments((document) => {
      const { expiry } = document
      if (expiry === undefined) return document
      return {
        ...document,
        expiry: 'at' in expiry ? { at: expiry.at - 60_000 } : { idleSeconds: expiry.idleSeconds / 10 },
      }
    }),
  ],
  [
    'an engine that keeps streams that have expired',
    /is deleted when it expires/,
    onStorage((session) => ({
      list: async (...args) => {
        const documents = await session.list(...args)
        return documents.filter(({ value }) => (value as { kind?: string } | null)?.kind !== 'expiry')
      },
    })),
  ],
]

describe('the checks of closed streams, producers, forks and expiry detect', () => {
  it.each(BROKEN)('%s', { timeout: 300_000 }, (_, expected, sabotage) => expectFound(expected, sabotage))
})
