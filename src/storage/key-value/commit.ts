import { type DocumentVersions, planCommit, type SerializedChange } from '../commit-plan.ts'
import { randomVersion } from '../document-keys.ts'
import { catalogKey, decodeDocumentValue, encodeDocumentValue } from './layout.ts'
import type { LogEntries, LogEntry } from './log-entries.ts'
import type { OrderedKeyValueStore } from './store.ts'
import { Draft } from './transaction.ts'

/** Reads what the changes name, and drafts the batch that makes them. */
export async function draftCommit(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  changes: readonly SerializedChange[],
): Promise<Draft> {
  const documents = new Map<string, { readonly key: Uint8Array; value: Uint8Array | undefined }>()
  const entries = new Map<string, LogEntry>()
  /** Documents that the changes expect something of: all others are replaced whatever they contain. */
  const expected = new Set<string>()
  await Promise.all(
    changes.map(async (change) => {
      if ('logId' in change) {
        entries.set(change.logId, await logs.current(change.logId))
        return
      }
      const name = nameOf(change.collection, change.key)
      const key = catalogKey(change.collection, change.key)
      if (change.expect !== undefined) expected.add(name)
      documents.set(name, { key, value: await store.get(key) })
    }),
  )
  const versions: DocumentVersions = {
    versionOf(collection, key) {
      const { value } = documents.get(nameOf(collection, key))!
      return value && decodeDocumentValue(value).version
    },
    nextVersion: randomVersion,
  }
  const plan = planCommit(changes, versions, {
    headOf: (logId) => entries.get(logId)!.log?.head,
    hasRemains: (logId) => entries.get(logId)!.value !== undefined,
  })
  const draft = new Draft()
  for (const name of expected) {
    const { key, value } = documents.get(name)!
    draft.expected.push([key, value])
  }
  for (const { collection, key, content } of plan.documents) {
    if (content === undefined) draft.deletes.push(catalogKey(collection, key))
    else draft.puts.push([catalogKey(collection, key), encodeDocumentValue(content.text, content.version)])
  }
  for (const { logId, head } of plan.logs) {
    const entry = entries.get(logId)!
    const { meteredBytes = 0, freedBelow = 0 } = entry.log ?? {}
    draft.putLog(logId, entry, head && { head, meteredBytes, freedBelow })
  }
  return draft
}

/** Unique, because names of collections do not contain U+0000. */
function nameOf(collection: string, key: string): string {
  return `${collection}\0${key}`
}
