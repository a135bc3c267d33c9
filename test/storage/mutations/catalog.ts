import type { Document, JsonValue, Storage } from '../../../src/storage/contract.ts'
import { delegating, wrapped } from '../wrapped-storage.ts'
import { type Mutation, mutate } from './mutation.ts'

export const catalogMutations: readonly Mutation[] = [
  {
    breaks: 'atomicity: changes of a commit are made one by one',
    noticedBy: ['catalog: a commit whose last expectation fails changes nothing'],
    make: mutate((session) => ({
      async commit(changes) {
        for (const change of changes) await session.commit([change])
      },
    })),
  },
  {
    breaks: 'expectations of documents: ignored',
    noticedBy: [
      'catalog: expecting null creates a document and never replaces one',
      'catalog: expecting a version requires exactly that version',
      'catalog: one of several concurrent commits with the same expectation succeeds',
    ],
    make: mutate((session) => ({
      commit: (changes) =>
        session.commit(
          changes.map((change) => {
            if (change.kind !== 'put' && change.kind !== 'delete') return change
            const { expect: _, ...unconditional } = change
            return unconditional
          }),
        ),
    })),
  },
  {
    breaks: 'checks: ignored',
    noticedBy: ['catalog: a check changes nothing and conflicts unless the version matches'],
    make: mutate((session) => ({
      commit: (changes) => session.commit(changes.filter(({ kind }) => kind !== 'check')),
    })),
  },
  {
    breaks: 'versions: restart when a document is recreated',
    noticedBy: [
      'catalog: a version changes with every put and is never reused',
      'catalog: a version from before a deletion does not match the recreated document',
      'lifecycle: a reopened storage continues with its versions and heads',
    ],
    make: versionsPerDocument,
  },
  {
    breaks: 'list order: by UTF-16 code units',
    noticedBy: ['catalog: keys are listed in the order of their UTF-8 bytes'],
    make: mutate((session) => ({
      async list(collection, range) {
        const listed = await session.list(collection, range)
        return listed.sort((a, b) => (a.key < b.key ? -1 : 1))
      },
    })),
  },
  {
    breaks: 'list start: `after` is inclusive',
    noticedBy: ['catalog: a list contains the keys after `after`, whether that key exists or not'],
    make: mutate((session) => ({
      async list(collection, range) {
        const first = await session.get(collection, range.after)
        return [...(first === undefined ? [] : [first]), ...(await session.list(collection, range))]
      },
    })),
  },
  {
    breaks: 'list prefix: taken as a pattern',
    noticedBy: ['catalog: a list contains the keys with the literal prefix'],
    make: mutate((session) => ({
      async list(collection, range) {
        const pattern = new RegExp(
          `^${range.prefix.replace(/%/g, '.*').replace(/_/g, '.').replace(/\\/g, '\\\\')}`,
        )
        const listed = await session.list(collection, { ...range, prefix: '' })
        return listed.filter(({ key }) => pattern.test(key))
      },
    })),
  },
  {
    breaks: 'list limit: exceeded by one',
    noticedBy: ['catalog: a list contains at most `limit` keys, and pages contain every key once'],
    make: mutate((session) => ({
      list: (collection, range) => session.list(collection, { ...range, limit: range.limit + 1 }),
    })),
  },
  {
    breaks: 'documents: returned without a copy',
    noticedBy: ['catalog: a value is copied on the way in and out'],
    make: mutate((session) => {
      const values = new Map<string, JsonValue>()
      return {
        async get(collection, key) {
          const document = await session.get(collection, key)
          if (document === undefined) return undefined
          const id = `${collection}/${key}/${document.version}`
          if (!values.has(id)) values.set(id, document.value)
          return { ...document, value: values.get(id)! }
        },
      }
    }),
  },
  {
    breaks: 'collections: shared by all',
    noticedBy: ['catalog: collections are independent'],
    make: mutate((session) => ({
      get: (_, key) => session.get('streams', key),
      commit: (changes) =>
        session.commit(
          changes.map((change) => ('collection' in change ? { ...change, collection: 'streams' } : change)),
        ),
    })),
  },
]

/** Counts the versions of each document from 1, each time that it is created. */
function versionsPerDocument(): Storage {
  const versions = new Map<string, number>()
  const withVersion = <Found extends Document | undefined>(document: Found): Found =>
    document === undefined ? document : { ...document, version: versions.get(document.key)! }
  return wrapped((session) => ({
    ...delegating(session),
    get: async (collection, key) => withVersion(await session.get(collection, key)),
    list: async (collection, range) => (await session.list(collection, range)).map(withVersion),
    async commit(changes) {
      const real = await Promise.all(
        changes.map(async (change) => {
          if (!('expect' in change) || typeof change.expect !== 'number') return change
          const document = await session.get(change.collection, change.key)
          const expect = versions.get(change.key) === change.expect ? document!.version : -1
          return { ...change, expect }
        }),
      )
      await session.commit(real)
      for (const change of changes) {
        if (change.kind === 'put') versions.set(change.key, (versions.get(change.key) ?? 0) + 1)
        if (change.kind === 'delete') versions.delete(change.key)
      }
    },
  }))
}
