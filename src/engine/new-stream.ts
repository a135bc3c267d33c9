import { firstCheckAt } from '../core/delete-on-empty.ts'
import { mergeStreamConfig } from '../core/stream-config.ts'
import type { StreamConfigInput } from '../model/config.ts'
import type { CatalogChange, LogStart, StorageSession } from '../storage/contract.ts'
import type { Versioned } from './catalog.ts'
import type { EngineContext, StreamRef } from './context.ts'
import { deadlineKey } from './deadlines.ts'
import { asJson, type BasinDocument, type StreamDocument, streamKey } from './documents.ts'

/** A stream that is to come to be in a basin. */
export function newStream(
  { settings }: EngineContext,
  basin: BasinDocument,
  ref: StreamRef,
  config: StreamConfigInput,
  creationKey: string | null,
): StreamDocument {
  return {
    basin: ref.basin,
    name: ref.stream,
    logId: settings.newId(),
    createdAt: settings.clock.now(),
    config: mergeStreamConfig(config, basin.config.defaultStreamConfig),
    cipher: basin.config.streamCipher,
    epoch: 1,
    creationKey,
  }
}

/** Creates the stream only in the basin as it was looked at: a basin that is being deleted gets no more streams. */
export async function addStream(
  { usage }: EngineContext,
  commit: StorageSession['commit'],
  document: StreamDocument,
  basin: Versioned<BasinDocument>,
  start?: LogStart,
): Promise<void> {
  const { logId, epoch, createdAt } = document
  await commit([
    { kind: 'check', collection: 'basins', key: basin.value.name, expect: basin.version },
    putStream(document, null),
    { kind: 'create-log', logId, epoch, createdAt, ...(start && { start }) },
    ...firstDeadline(document, createdAt),
  ])
  usage.streamCreated(document.basin)
}

/** When to look for the first time whether the stream goes; nothing when it has no delete-on-empty. */
export function firstDeadline(document: StreamDocument, now: number): CatalogChange[] {
  const { minAgeSeconds } = document.config.deleteOnEmpty
  if (minAgeSeconds === 0) return []
  const { basin, name, logId } = document
  const key = deadlineKey(firstCheckAt(minAgeSeconds, now), logId)
  return [{ kind: 'put', collection: 'deadlines', key, value: asJson({ basin, stream: name, logId }) }]
}

export function putStream(document: StreamDocument, expect: number | null): CatalogChange {
  const key = streamKey(document.basin, document.name)
  return { kind: 'put', collection: 'streams', key, value: asJson(document), expect }
}
