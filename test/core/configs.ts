import fc from 'fast-check'
import type {
  BasinReconfiguration,
  Cipher,
  RetentionPolicy,
  StorageClass,
  StreamConfigInput,
  StreamReconfiguration,
  TimestampingMode,
} from '../../src/model/config.ts'

const storageClass = fc.constantFrom<StorageClass>('standard', 'express')
const retentionPolicy = fc.oneof(
  fc.constant<RetentionPolicy>('infinite'),
  fc.record({ ageSeconds: fc.integer({ min: 1, max: 5 }) }),
)
const mode = fc.constantFrom<TimestampingMode>('client-prefer', 'client-require', 'arrival')
const minAgeSeconds = fc.nat(2)

/** Members may be absent or undefined. */
export const anyStreamConfig: fc.Arbitrary<StreamConfigInput> = fc.record(
  {
    storageClass: optional(storageClass),
    retentionPolicy: optional(retentionPolicy),
    timestamping: optional(
      fc.record({ mode: optional(mode), uncapped: optional(fc.boolean()) }, { requiredKeys: [] }),
    ),
    deleteOnEmpty: optional(fc.record({ minAgeSeconds: optional(minAgeSeconds) }, { requiredKeys: [] })),
  },
  { requiredKeys: [] },
)

/** Members may be absent, undefined or null. */
export const anyStreamChange: fc.Arbitrary<StreamReconfiguration> = fc.record(
  {
    storageClass: clearable(storageClass),
    retentionPolicy: clearable(retentionPolicy),
    timestamping: clearable(
      fc.record({ mode: clearable(mode), uncapped: clearable(fc.boolean()) }, { requiredKeys: [] }),
    ),
    deleteOnEmpty: clearable(fc.record({ minAgeSeconds: clearable(minAgeSeconds) }, { requiredKeys: [] })),
  },
  { requiredKeys: [] },
)

export const anyBasinChange: fc.Arbitrary<BasinReconfiguration> = fc.record(
  {
    defaultStreamConfig: clearable(anyStreamChange),
    streamCipher: clearable(fc.constantFrom<Cipher>('aegis-256', 'aes-256-gcm')),
    createStreamOnAppend: clearable(fc.boolean()),
    createStreamOnRead: clearable(fc.boolean()),
  },
  { requiredKeys: [] },
)

function optional<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> {
  return fc.option(value, { nil: undefined })
}

function clearable<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null | undefined> {
  return fc.oneof(value, fc.constantFrom(null, undefined))
}
