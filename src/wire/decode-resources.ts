import type {
  BasinConfig,
  Cipher,
  RetentionPolicy,
  StorageClass,
  StreamConfig,
  StreamConfigInput,
  TimestampingMode,
} from '../model/config.ts'
import type { BasinInfo, Page, StreamInfo } from '../model/info.ts'
import { integerOfJson, MalformedResponse, recordOf } from './response-json.ts'
import {
  booleanOfJson,
  choiceOf,
  dateOf,
  responseArrayOf,
  textOfJson,
  unlessNull,
} from './response-members.ts'

/** Decoders of successful JSON responses. All throw {@link MalformedResponse}. */

/** Decodes a basin. */
export function basinInfoOf(value: unknown): BasinInfo {
  const { name, state, location, scope, created_at, deleted_at } = recordOf(value, 'basin')
  return {
    name: textOfJson(name, 'name'),
    location: textOfJson(location ?? scope ?? '', 'location'),
    // A basin that is being created can be used as soon as it is.
    state: state === 'deleting' ? 'deleting' : 'active',
    createdAt: dateOf(created_at, 'created_at'),
    deletedAt: unlessNull(deleted_at, (date) => dateOf(date, 'deleted_at')) ?? null,
  }
}

/** Decodes a stream. */
export function streamInfoOf(value: unknown): StreamInfo {
  const { name, created_at, deleted_at, cipher } = recordOf(value, 'stream')
  return {
    name: textOfJson(name, 'name'),
    createdAt: dateOf(created_at, 'created_at'),
    deletedAt: unlessNull(deleted_at, (date) => dateOf(date, 'deleted_at')) ?? null,
    cipher: cipherOf(cipher),
  }
}

/** Decodes a page of a list, whose items are in this member. */
export function decodePage<Item>(
  value: unknown,
  member: 'basins' | 'streams' | 'access_tokens',
  itemOf: (value: unknown) => Item,
): Page<Item> {
  const page = recordOf(value, 'page')
  return {
    items: responseArrayOf(page[member], member).map(itemOf),
    hasMore: booleanOfJson(page.has_more, 'has_more'),
  }
}

/** Decodes the complete configuration of a stream. */
export function streamConfigOf(value: unknown): StreamConfig {
  const { retentionPolicy, timestamping, deleteOnEmpty, ...others } = partialStreamConfigOf(value)
  if (retentionPolicy === undefined) throw new MalformedResponse('`retention_policy` is missing')
  return {
    ...others,
    retentionPolicy,
    timestamping: { mode: timestamping?.mode ?? 'client-prefer', uncapped: timestamping?.uncapped ?? false },
    deleteOnEmpty: { minAgeSeconds: deleteOnEmpty?.minAgeSeconds ?? 0 },
  }
}

/** Decodes the configuration of a basin. */
export function basinConfigOf(value: unknown): BasinConfig {
  const config = recordOf(value, 'basin configuration')
  const flagOf = (name: string) => unlessNull(config[name], (flag) => booleanOfJson(flag, name)) ?? false
  return {
    defaultStreamConfig: unlessNull(config.default_stream_config, partialStreamConfigOf) ?? {},
    streamCipher: cipherOf(config.stream_cipher),
    createStreamOnAppend: flagOf('create_stream_on_append'),
    createStreamOnRead: flagOf('create_stream_on_read'),
  }
}

function partialStreamConfigOf(value: unknown): StreamConfigInput {
  const config = recordOf(value, 'stream configuration')
  const retentionPolicy = unlessNull(config.retention_policy, retentionPolicyOf)
  const timestamping = unlessNull(config.timestamping, (group) => {
    const { mode, uncapped } = recordOf(group, 'timestamping')
    return {
      ...(mode != null && { mode: choiceOf(mode, 'mode', MODES) }),
      ...(uncapped != null && { uncapped: booleanOfJson(uncapped, 'uncapped') }),
    }
  })
  const minAgeSeconds = unlessNull(config.delete_on_empty, (group) =>
    unlessNull(recordOf(group, 'delete_on_empty').min_age_secs, (age) => integerOfJson(age, 'min_age_secs')),
  )
  const { storage_class: storageClass } = config
  return {
    ...(storageClass != null && { storageClass: choiceOf(storageClass, 'storage_class', STORAGE_CLASSES) }),
    ...(retentionPolicy !== undefined && { retentionPolicy }),
    ...(timestamping !== undefined && Object.keys(timestamping).length > 0 && { timestamping }),
    ...(minAgeSeconds !== undefined && { deleteOnEmpty: { minAgeSeconds } }),
  }
}

const STORAGE_CLASSES: readonly StorageClass[] = ['standard', 'express']
const MODES: readonly TimestampingMode[] = ['client-prefer', 'client-require', 'arrival']
const CIPHERS: readonly Cipher[] = ['aegis-256', 'aes-256-gcm']

function retentionPolicyOf(value: unknown): RetentionPolicy {
  const { age } = recordOf(value, 'retention_policy')
  return age === undefined ? 'infinite' : { ageSeconds: integerOfJson(age, 'age') }
}

function cipherOf(value: unknown): Cipher | null {
  return unlessNull(value, (cipher) => choiceOf(cipher, 'cipher', CIPHERS)) ?? null
}
